/* jansson.js - jansson for the module. A value is a JavaScript value, with a handle in the module's
 * memory: its type and its count of references, which the functions in jansson.h read. A part has a
 * handle of its own, which lives as long as that of the whole. m is the module (mizzle.js). */
'use strict';

function jansson(m) {
    const handles = new Map(), /* handle: { v, parts, text, n, keys } */
        iterators = new Map(); /* a key's text in memory: { p, i, name } */
    const whole = (v) => v !== null && typeof v === 'object';
    const type = (v) => {
        if (whole(v)) return Array.isArray(v) ? 1 : 0;
        if (typeof v === 'string') return 2;
        if (typeof v === 'number') return Number.isInteger(v) ? 3 : 4;
        return v === null ? 7 : v ? 5 : 6;
    };
    const put = (v, count = 1) => {
        const p = m.copy([], 8);
        m.set(p, type(v));
        m.set(p + 4, count);
        handles.set(p, { v, parts: new Map(), text: 0, n: 0, keys: [] });
        return p;
    };
    const val = (p) => handles.get(p)?.v;
    const drop = (p) => {
        const { parts, text, keys } = handles.get(p);
        handles.delete(p);
        parts.forEach(unref);
        for (const key of keys) iterators.delete(key);
        for (const block of [...keys, text, p]) m.free(block);
    };
    const unref = (p) => {
        const count = m.u32(p + 4);
        if (count === 1) drop(p);
        else if (count !== 0xffffffff) m.set(p + 4, count - 1); /* null stays */
    };
    /* Return the value of a handle that is given away. */
    const take = (p) => {
        const v = val(p);
        unref(p);
        return v;
    };
    const part = (p, key) => {
        const { v, parts } = handles.get(p) || {};
        if (!whole(v) || !Object.hasOwn(v, key)) return 0;
        if (!parts.has(key)) parts.set(key, put(v[key]));
        return parts.get(key);
    };
    const add = (p, key, given) => {
        if (!p || !given) return -1;
        val(p)[key] = take(given);
        return 0;
    };
    const string = (p) => {
        const h = handles.get(p);
        if (typeof h?.v !== 'string') return 0;
        if (!h.text) [h.text, h.n] = m.keep(h.v);
        return h.text;
    };
    const iterate = (p, i) => {
        const name = Object.keys(val(p) ?? {})[i];
        if (name === undefined) return 0;
        const [key] = m.keep(name);
        handles.get(p).keys.push(key);
        iterators.set(key, { p, i, name });
        return key;
    };
    /* Give f the value as text[n] in memory, with the digits of serve_routes.c. */
    const print = (p, f) => {
        const round = (key, v) => (type(v) === 4 ? Number(v.toPrecision(12)) : v),
            [text, n] = m.keep(JSON.stringify(val(p), round)),
            result = f(text, n);
        m.free(text);
        return result;
    };
    const pack = (format, args) => {
        const f = m.text(format).replace(/[\s,:]/g, '');
        let i = 0,
            fine = true;
        const word = () => m.u32((args += 4) - 4);
        const wide = (get) => m.view()[get]((args = ((args + 7) & ~7) + 8) - 8, true);
        const all = (to, end) => {
            while (f[i] !== end) {
                const key = end === '}' ? f[i++] && m.text(word()) : to.length,
                    v = one();
                if (v !== undefined) to[key] = v;
            }
            i++;
            return to;
        };
        const pointer = (c) => {
            const p = word(),
                lack = f[i] === '?' || f[i] === '*' ? f[i++] : '';
            if (p) return c === 's' ? m.text(p) : c === 'o' ? take(p) : val(p);
            fine = fine && lack !== '';
            return lack === '?' ? null : undefined;
        };
        const one = () => {
            const c = f[i++];
            if (c === '{') return all({}, '}');
            if (c === '[') return all([], ']');
            if (c === 'n') return null;
            if (c === 'b') return word() !== 0;
            if (c === 'i') return word() | 0;
            if (c === 'I') return Number(wide('getBigInt64'));
            return c === 'f' ? wide('getFloat64') : pointer(c);
        };
        const v = one();
        return fine ? put(v) : 0;
    };
    let none = 0;
    m.put = put;
    return {
        json_delete: drop,
        json_null: () => (none ||= put(null, -1)),
        json_object: () => put({}),
        json_array: () => put([]),
        json_integer: (v) => put(Number(v)),
        json_real: (v) => put(v),
        json_string: (p) => put(m.text(p)),
        json_stringn: (p, n) => put(m.text(p, n)),
        json_integer_value: (p) => (type(val(p)) === 3 ? BigInt(val(p)) : 0n),
        json_number_value: (p) => (typeof val(p) === 'number' ? val(p) : 0),
        json_string_value: string,
        json_string_length: (p) => (string(p) ? handles.get(p).n : 0),
        json_array_size: (p) => (Array.isArray(val(p)) ? val(p).length : 0),
        json_array_get: (p, i) => (Array.isArray(val(p)) ? part(p, i) : 0),
        json_array_append_new: (p, given) => add(p, val(p)?.length, given),
        json_object_size: (p) => (whole(val(p)) ? Object.keys(val(p)).length : 0),
        json_object_get: (p, key) => part(p, m.text(key)),
        json_object_set_new: (p, key, given) => add(p, m.text(key), given),
        json_object_iter: (p) => iterate(p, 0),
        json_object_iter_next: (p, key) => iterate(p, iterators.get(key).i + 1),
        json_object_iter_key: (key) => key,
        json_object_key_to_iter: (key) => key,
        json_object_iter_value: (key) => part(iterators.get(key).p, iterators.get(key).name),
        json_loadb: (p, n) => put(JSON.parse(m.text(p, n))) /* of our files alone */,
        json_pack: pack,
        json_dumpb: (p, out, room) =>
            print(p, (text, n) => {
                if (n <= room) m.bytes().copyWithin(out, text, text + n);
                return n;
            }),
        json_dump_callback: (p, f, arg) => print(p, (text, n) => m.call(f, text, n, arg)),
    };
}
