/* wasi.js - the system that the module sees: a folder of files in memory, which are read only, a
 * clock, and the console for what it prints. m is the module (mizzle.js), files are
 * { name: bytes }. Numbers that are returned are WASI's errors, or 0. */
'use strict';

function wasi(m, files) {
    const NONE = 44,
        opened = new Map([[3, { data: null, at: 0 }]]); /* the folder */
    const find = (p, n) => {
        const name = m.text(p, n).replace(/^[./]+/, '');
        return name === '' ? null : files[name];
    };
    const stat = (out, data) => {
        if (data === undefined) return NONE;
        m.bytes().fill(0, out, out + 64);
        m.bytes()[out + 16] = data ? 4 : 3;
        return m.set64(out + 32, data ? data.length : 0);
    };
    /* Call f for each of the n pieces of memory in a list; return the sum of what it gives. */
    const pieces = (list, n, f) => {
        let all = 0;
        for (let i = 0; i < n; i++) all += f(m.u32(list + 8 * i), m.u32(list + 8 * i + 4), all);
        return all;
    };
    const read = (data, at, list, n) =>
        pieces(list, n, (p, size, done) => {
            const part = data.subarray(at + done, at + done + size);
            m.bytes().set(part, p);
            return part.length;
        });
    return {
        environ_sizes_get: (count, size) => m.set(count, 0) || m.set(size, 0),
        clock_time_get: (clock, precision, out) =>
            m.set64(out, Math.round((clock ? performance.now() : Date.now()) * 1e6)),
        fd_prestat_get: (fd, out) => (fd === 3 ? m.set(out, 0) || m.set(out + 4, 1) : 8),
        fd_prestat_dir_name: (fd, p) => m.bytes().set([0x2f], p) || 0 /* the folder is / */,
        fd_fdstat_get(fd, out) {
            m.bytes().fill(0, out, out + 8).fill(255, out + 8, out + 24); /* all rights */
            m.bytes()[out] = fd === 3 ? 3 : fd < 3 ? 2 : 4;
            return 0;
        },
        path_filestat_get: (fd, flags, p, n, out) => stat(out, find(p, n)),
        path_open(fd, dirflags, p, n, oflags, rights, inheriting, flags, out) {
            const data = find(p, n),
                free = Math.max(...opened.keys()) + 1;
            if (data === undefined) return NONE;
            opened.set(free, { data, at: 0 });
            return m.set(out, free);
        },
        path_readlink: () => 28 /* none is a link */,
        fd_filestat_get: (fd, out) => stat(out, opened.get(fd)?.data),
        fd_close: (fd) => (opened.delete(fd) ? 0 : 8),
        fd_seek(fd, by, whence, out) {
            const file = opened.get(fd);
            if (!file?.data) return 70;
            file.at = Number(by) + [0, file.at, file.data.length][whence];
            return m.set64(out, file.at);
        },
        fd_pread: (fd, list, n, at, out) =>
            m.set(out, read(opened.get(fd).data, Number(at), list, n)),
        fd_read(fd, list, n, out) {
            const file = opened.get(fd),
                all = read(file.data, file.at, list, n);
            file.at += all;
            return m.set(out, all);
        },
        fd_write(fd, list, n, out) {
            let said = '';
            const all = pieces(list, n, (p, size) => ((said += m.text(p, size)), size));
            if (said.trim()) console.warn(said.trim());
            return m.set(out, all);
        },
    };
}
