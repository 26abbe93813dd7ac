/* t_store.c - tests the store on disk: torn tails at every byte, flipped bits, a full disk,
 * compaction, other files, no memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/net/answers/store_help.h"
#include "tests/support/files.h"
#include "tests/support/torture.h"

/* store_note gives a line with this text. */
static void says(struct store *s, const char *what)
{
    struct err note = { "" };
    CHECK(store_note(s, &note));
    CHECK_MSG(strstr(note.msg, what) && strstr(note.msg, path) && !strchr(note.msg, '\n'),
              "expected %s, found %s", what, note.msg);
}

static void test_basics(void)
{
    struct store *s = must_open();
    struct prefix_key k = key_of(1), other = prefix_key_fingerprint("another model", 7);
    uint32_t id = 1;
    CHECK(!has(s, 1));
    put(s, 1);
    put(s, 1);
    CHECK(has(s, 1) && !has(s, 2) && store_size(s) == 1);
    CHECK(size_of() == head_size() + line_of(1));
    other = prefix_key_of(&other, &id, 1); /* the same prefix of another model */
    CHECK(!store_get(s, &other, &id));
    store_put(s, &k, 5); /* the newer answer counts */
    CHECK(store_get(s, &k, &id) && id == 5 && store_size(s) == 1);
    put(s, 1);
    store_close(s);
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    s = must_open();
    CHECK(has(s, 1) && store_size(s) == 1);
    silent(s);
    store_close(s);
    CHECK(unlink(path) == 0);
}

enum { SOME = 4, BYTES = 400 };

/* Make a store with SOME answers, and return its n bytes. */
static size_t make_some(char bytes[BYTES])
{
    struct store *s = must_open();
    for (uint32_t i = 0; i < SOME; i++)
        put(s, i);
    store_close(s);
    size_t n = slurp(path, bytes, BYTES);
    CHECK(n < BYTES && n == size_of());
    return n;
}

/* Its text: one format, of which a recording is another use, and nothing of the prompt. */
static void test_text(void)
{
    char bytes[BYTES], hash[PREFIX_KEY_TEXT], want[100];
    size_t n = make_some(bytes);
    struct prefix_key k = key_of(1);
    bytes[n] = 0;
    prefix_key_text(hash, &k);
    snprintf(want, sizeof(want), "\n{\"hash\":\"%s\",\"id\":%u,\"crc\":\"", hash, id_of(1));
    CHECK(strstr(bytes, "{\"mizzle_answers\":2,\"crc\":\"") == bytes && strstr(bytes, want));
    CHECK(unlink(path) == 0);
}

/* Another process appends n bytes. */
static void append(const char *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
}

/* A file torn at every byte keeps its whole lines. */
static void test_torn(void)
{
    char bytes[BYTES];
    size_t size = make_some(bytes);
    for (size_t n = 0; n <= size; n++) {
        spill(path, bytes, n);
        size_t lines = 0, torn = 0;
        for (size_t i = 0; i < n; i++) {
            torn = bytes[i] == '\n' ? 0 : torn + 1;
            lines += bytes[i] == '\n';
        }
        struct store *s = must_open();
        for (uint32_t i = 0; i < SOME; i++)
            CHECK(has(s, i) == (i + 1 < lines));
        if (torn)
            says(s, "torn line");
        silent(s);
        put(s, 77);
        store_close(s);
        CHECK(size_of() == (lines ? n - torn : head_size()) + line_of(77));
        s = must_open();
        CHECK(has(s, 77) && store_size(s) == (lines ? lines : 1));
        silent(s);
        store_close(s);
    }
    /* Another process tears it while this one has it open, or empties it. */
    spill(path, bytes, size);
    struct store *s = must_open();
    spill(path, bytes, size - 1);
    put(s, 78);
    says(s, "torn line");
    CHECK(has(s, 3) && has(s, 78) && size_of() == size - line_of(3) + line_of(78));
    spill(path, "", 0);
    put(s, 79);
    CHECK(has(s, 79) && size_of() == head_size() + line_of(79));
    /* Or appends damage without an end, which is ended; the next line counts. */
    static char damage[ANSWER_LINE + 2];
    memset(damage, 'x', sizeof(damage));
    append(damage, sizeof(damage));
    CHECK(!has(s, 81));
    put(s, 80);
    struct prefix_key k = key_of(82);
    append(damage, answer_line_stored(damage, &k, id_of(82)));
    CHECK(has(s, 80) && has(s, 82));
    store_close(s);
    CHECK(unlink(path) == 0);
}

/* Each flipped bit costs the answers that it hits and never gives a wrong one. */
static void test_flips(void)
{
    char bytes[BYTES];
    size_t size = make_some(bytes);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct store *s;
        size_t at = bit / 8, line = 0;
        bool end = bytes[at] == '\n'; /* of a line, which its next one hits, too */
        for (size_t i = 0; i < at; i++)
            line += bytes[i] == '\n';
        bytes[at] ^= (char)(1 << bit % 8);
        spill(path, bytes, size);
        int rc = store_open(&s, path, 0, &err);
        CHECK(rc == (line ? OK : ERR_FORMAT) && (s || strstr(err.msg, path)));
        for (uint32_t i = 0; s && i < SOME; i++)
            CHECK(has(s, i) == (i + 1 != line && (!end || i != line)));
        if (s) {
            says(s, at + 1 == size ? "torn line" : bytes[at] == '\n' ? "2 damaged" : "1 damaged");
            silent(s);
        }
        store_close(s);
        CHECK(at + 1 == size || size_of() == size); /* no whole line is removed */
        bytes[at] ^= (char)(1 << bit % 8);
    }
    CHECK(unlink(path) == 0);
}

/* Files that are no stores are refused and left as they are. */
static void test_strangers(void)
{
    struct store *s;
    static const struct {
        const char *text, *says;
    } files[] = {
        { "x", "expected a store of answers, found other bytes" },
        { "MZSTORE\n\1", "version: expected 2, found 1" },
        { "{\"mizzle_record\":1,\"model\":\"m\"", "version: expected 2, found 1" },
        { "{\"mizzle_answers\":3,", "version: expected 2, found 3" },
        { "{\"mizzle_answers\":2,\"model\":\"m\"", "found a recording" },
        { "{\"mizzle_answers\":2,\"crc\":\"00000000\"}\n", "found other bytes" },
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char text[100];
        memset(text, 'x', sizeof(text));
        memcpy(text, files[i].text, strlen(files[i].text));
        size_t n = i ? sizeof(text) : 1;
        spill(path, text, n);
        CHECK(store_open(&s, path, 0, &err) == ERR_FORMAT && !s && strstr(err.msg, path));
        CHECK(strstr(err.msg, files[i].says) && size_of() == n);
    }
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(store_open(&s, path, 0, &err) == ERR_ARG && strstr(err.msg, "regular file"));
    CHECK(unlink(path) == 0);
    CHECK(store_open(&s, folder, 0, &err) == ERR_ARG);
    CHECK(store_open(&s, "t_store.none/x", 0, &err) == ERR_IO);
    CHECK(store_open(&s, path, 1000, &err) == ERR_ARG && strstr(err.msg, "found 1000 bytes"));
    CHECK(store_open(&s, path, UINT64_MAX, &err) == ERR_ARG);
    /* A file of 1 TB of zeros with a header is read from its end, then compacted. */
    s = must_open();
    store_close(s);
    if (truncate(path, (off_t)1 << 40) == 0) {
        s = must_open();
        put(s, 1);
        CHECK(has(s, 1) && size_of() <= STORE_LEAST);
        store_close(s);
    }
    CHECK(unlink(path) == 0);
}

/* Compaction replaces the target of a symbolic link. */
static void test_link(void)
{
    struct stat st;
    char real[64];
    snprintf(real, sizeof(real), "%s/real", folder);
    CHECK(symlink("real", path) == 0);
    struct store *s = must_open();
    for (uint32_t i = 0; i < 4000; i++)
        put(s, i);
    store_close(s);
    CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && lstat(real, &st) == 0);
    CHECK(S_ISREG(st.st_mode) && st.st_size > (off_t)head_size() && st.st_size <= STORE_LEAST);
    CHECK(unlink(path) == 0 && unlink(real) == 0);
    CHECK(symlink("store", path) == 0); /* a link that leads to itself */
    CHECK(store_open(&s, path, 0, &err) == ERR_IO && strstr(err.msg, "symbolic"));
    CHECK(unlink(path) == 0);
}

/* The store is not opened, and the error says why. */
static void refused(const char *why)
{
    struct store *s;
    CHECK(store_open(&s, path, 0, &err) == ERR_IO && !s);
    CHECK_MSG(strstr(err.msg, why), "expected %s, found %s", why, err.msg);
}

/* Others could have put answers into the file, or a link in its place. */
static void test_planted(void)
{
    char bytes[BYTES], real[64];
    snprintf(real, sizeof(real), "%s/real", folder);
    make_some(bytes);
    static const mode_t modes[] = { 0602, 0620, 0666 };
    for (size_t i = 0; i < 3; i++) {
        CHECK(chmod(path, modes[i]) == 0);
        refused("only its owner may write (chmod go-w)");
    }
    CHECK(chmod(path, 0600) == 0);
    store_close(must_open());
    if (geteuid() != 0) {
        puts("SKIP: files of another user need root");
    } else {
        CHECK(chown(path, 65534, 65534) == 0);
        refused("found one of user 65534");
        CHECK(rename(path, real) == 0 && symlink("real", path) == 0);
        CHECK(chown(real, 0, 0) == 0 && chmod(folder, 01777) == 0);
        store_close(must_open()); /* one's own link */
        CHECK(lchown(path, 65534, 65534) == 0);
        refused("another user's link");
        CHECK(unlink(real) == 0);
        refused("another user's link");
        CHECK(access(real, F_OK) != 0 && chmod(folder, 0700) == 0);
    }
    CHECK(unlink(path) == 0);
}

static void test_read_only(void)
{
    char bytes[BYTES];
    uid_t nobody = 65534;
    size_t size = make_some(bytes);
    CHECK(chmod(folder, 0755) == 0 && chmod(path, 0444) == 0);
    bool root = geteuid() == 0; /* root may write everything */
    CHECK(!root || seteuid(nobody) == 0);
    if (access(path, R_OK) == 0) {
        struct store *s = must_open();
        says(s, "read-only");
        put(s, 50);
        CHECK(has(s, 1) && !has(s, 50) && size_of() == size);
        silent(s);
        store_close(s);
    } else {
        printf("SKIP: another user may not come here: no read-only store\n");
    }
    CHECK(!root || seteuid(0) == 0);
    CHECK(unlink(path) == 0);
}

/* Leave a file in the folder. */
static void leave(const char *name)
{
    FILE *f = fopen(name, "wb");
    CHECK(f && fputs("not ours", f) >= 0 && fclose(f) == 0);
}

/* True when the folder holds only the store. */
static bool alone(void)
{
    DIR *d = opendir(folder);
    size_t n = 0;
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n == 1;
}

/* The file ends with answer i, and has it once. */
static bool ends_once(uint32_t i)
{
    static char bytes[STORE_LEAST + 1];
    char line[ANSWER_LINE_STORED + 1];
    struct prefix_key k = key_of(i);
    size_t size = slurp(path, bytes, STORE_LEAST), n = answer_line_stored(line, &k, id_of(i));
    bytes[size] = line[n] = 0;
    return size > n && strstr(bytes, line) == bytes + size - n;
}

/* The newest answers stay, the limit holds, and others notice the new file. */
static void test_compaction(void)
{
    struct store *s = must_open(), *reader;
    CHECK(store_open(&reader, path, STORE_LEAST, &err) == OK);
    for (uint32_t i = 0; i < 7000; i++) {
        size_t before = size_of();
        put(s, i);
        CHECK(size_of() <= STORE_LEAST && (size_of() > before || ends_once(i)));
        CHECK(has(s, i) && (i < 400 || has(s, i - 400)));
        if (i % 100 == 0)
            CHECK(has(reader, i));
    }
    CHECK(alone());
    CHECK(!has(s, 0) && !has(reader, 0) && store_size(s) == store_size(reader));
    silent(s);
    store_close(reader);
    store_close(s);
    s = must_open();
    CHECK(has(s, 6999) && has(s, 6600) && !has(s, 0));
    /* Write the same few answers repeatedly, beside a file of the user's and one left by a process
     * that was killed during a compaction and had our number. */
    char mine[80];
    snprintf(mine, sizeof(mine), "%s.new", path);
    leave(mine);
    name_made(getpid(), 0);
    leave(made);
    for (uint32_t i = 0; i < 2500; i++) {
        struct prefix_key k = key_of(i % 3);
        store_put(s, &k, i);
    }
    CHECK(size_of() <= STORE_LEAST && has(s, 6999) && unlink(made) == 0 && unlink(mine) == 0);
    CHECK(alone());
    store_close(s);
    /* Open with a smaller limit than before. */
    CHECK(store_open(&s, path, 10 * STORE_LEAST, &err) == OK);
    for (uint32_t i = 0; i < 3000; i++)
        put(s, i);
    CHECK(size_of() > 2 * STORE_LEAST);
    store_close(s);
    s = must_open();
    CHECK(size_of() <= STORE_LEAST && has(s, 2999) && !has(s, 10));
    store_close(s);
    CHECK(unlink(path) == 0);
}

/* A process may die during a compaction: the folder takes no new file, or the new file is there but
 * not renamed. The old store stays in use. */
static void test_no_compaction(void)
{
    struct store *s = must_open();
    for (unsigned i = 0; i < 100; i++)
        CHECK(name_made(getpid(), i) && mkdir(made, 0700) == 0);
    for (uint32_t i = 0; i < 4000; i++)
        put(s, i);
    CHECK(size_of() <= STORE_LEAST && has(s, 0));
    struct err note;
    CHECK(store_note(s, &note) && strstr(note.msg, path) && strstr(note.msg, strerror(EEXIST)));
    CHECK(store_note(s, &note) && strstr(note.msg, "could not be kept"));
    store_close(s);
    for (unsigned i = 0; i < 100; i++)
        CHECK(name_made(getpid(), i) && rmdir(made) == 0);
    CHECK(unlink(path) == 0);
}

/* A store named without a slash lies in the current folder. If it cannot be created there, the
 * error has name and reason. */
static void test_bare_name(void)
{
    char home[4096], whole[64];
    struct store *s;
    CHECK(getcwd(home, sizeof(home)) && chmod(folder, 0755) == 0 && chdir(folder) == 0);
    memcpy(whole, path, sizeof(whole));
    memcpy(path, "answers.store", sizeof("answers.store"));
    s = must_open();
    for (uint32_t i = 0; i < 4000; i++)
        put(s, i);
    CHECK(size_of() <= STORE_LEAST && has(s, 3999) && !has(s, 0));
    silent(s);
    store_close(s);
    CHECK(unlink(path) == 0);
    bool root = geteuid() == 0; /* who may write everything */
    CHECK(chmod(".", 0555) == 0 && (!root || seteuid(65534) == 0));
    CHECK(store_open(&s, path, 0, &err) == ERR_IO && !s);
    CHECK(strstr(err.msg, path) && strstr(err.msg, strerror(EACCES)));
    CHECK(!root || seteuid(0) == 0);
    CHECK(chdir(home) == 0 && chmod(folder, 0700) == 0);
    memcpy(path, whole, sizeof(path));
}

/* Without room beyond a certain byte, for every such byte, the file stays whole; with room again,
 * the waiting answers are written. */
static void test_full_disk(void)
{
    struct rlimit was, now;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &was) == 0);
    const size_t head = head_size(), three = line_of(0) + line_of(1) + line_of(2);
    for (rlim_t most = head; most < head + three; most++) {
        struct store *s = must_open();
        now = was;
        now.rlim_cur = most;
        CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
        for (uint32_t i = 0; i < 3; i++)
            put(s, i);
        CHECK(size_of() == head + (most < head + line_of(0) ? 0
                                   : most < head + line_of(0) + line_of(1)
                                       ? line_of(0)
                                       : line_of(0) + line_of(1)));
        CHECK(has(s, 0) && has(s, 1) && has(s, 2));
        struct err note;
        CHECK(store_note(s, &note) && strstr(note.msg, "cannot write"));
        silent(s); /* once */
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        put(s, 3);
        CHECK(size_of() == head + three + line_of(3));
        store_close(s);
        s = must_open();
        CHECK(has(s, 0) && has(s, 1) && has(s, 2) && has(s, 3));
        silent(s);
        store_close(s);
        CHECK(unlink(path) == 0);
    }
    now = was;
    now.rlim_cur = 10; /* room for less than the header */
    CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
    struct store *s;
    CHECK(store_open(&s, path, 0, &err) == ERR_IO && strstr(err.msg, "cannot write"));
    CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK(unlink(path) == 0);
}

/* Every allocation fails once. */
static void test_memory(void)
{
    long n = 0;
    int reached;
    do {
        struct store *s;
        torture_begin(++n);
        int rc = store_open(&s, path, 0, &err);
        CHECK(rc == (s ? OK : ERR_NOMEM));
        for (uint32_t i = 0; s && i < 1500; i++) { /* more than the first index holds */
            put(s, i);
            has(s, i);
        }
        struct err note;
        bool told = s && store_note(s, &note);
        store_close(s);
        reached = torture_end();
        CHECK(torture_live() == 0 && told == (s && reached));
        CHECK(!told || strstr(note.msg, "out of memory"));
    } while (reached);
    CHECK(n > 4);
    struct store *s;
    CHECK(store_open(&s, path, 0, &err) == OK);
    for (uint32_t i = 0; i < 1500; i++)
        CHECK(has(s, i));
    store_close(s);
    CHECK(unlink(path) == 0);
}

int main(void)
{
    begin();
    test_basics();
    test_text();
    test_torn();
    test_flips();
    test_strangers();
    test_link();
    test_planted();
    test_read_only();
    test_compaction();
    test_no_compaction();
    test_bare_name();
    test_full_disk();
    test_memory();
    CHECK(rmdir(folder) == 0);
    return 0;
}
