/* t_answer_file.c - tests the file of answers: torn tails at every byte, flipped bits, hostile
 * lines, other files, a full disk, and what begins anew. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/net/answers/answers_help.h"

enum { SOME = 4, BYTES = 1000 };

/* Make a file with SOME answers, and return its n bytes. */
static size_t make_some(char bytes[BYTES])
{
    struct answers *c = must_open();
    for (uint32_t i = 0; i < SOME; i++)
        put(c, i);
    answers_close(c);
    size_t n = slurp(path, bytes, BYTES);
    CHECK(n < BYTES && n == size_of(path));
    return n;
}

/* Its text, which has nothing of the prompt and is one harmless line. The hash is that of sha256sum
 * over 7 in 8 bytes and 1 in 4. */
static void test_text(void)
{
    char bytes[BYTES];
    struct answers *c;
    struct stat st;
    const struct answers_options o = { .file = path, .tokenizer = 7, .vocab = SIZE_MAX };
    uint32_t one = 1;
    CHECK(answers_open(&c, &o, &err) == OK);
    CHECK(answers_server(c, "Qwen \"x\"\n\x1b[2J", &err) == OK);
    CHECK(size_of(path) == 0);
    answers_put(c, &one, 1, true, 151935);
    answers_put(c, &one, 1, true, 151935); /* it is there */
    answers_close(c);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    bytes[slurp(path, bytes, BYTES - 1)] = 0;
    static const char want[] =
        "{\"mizzle_answers\":3,\"model\":\"Qwen \\\"x\\\"\\n\\u001B[2J\",\"tokenizer\":"
        "\"0000000000000007\",\"n\":1,\"prefix\":\"0c7ef1d379866654397bdcc7a4a8c20a\",\"id\":"
        "151935,\"crc\":\"";
    CHECK_MSG(strncmp(bytes, want, strlen(want)) == 0, "%s", bytes);
    CHECK(strchr(bytes, '\n') == bytes + strlen(bytes) - 1);
    CHECK(answers_open(&c, &o, &err) == OK);
    CHECK(answers_server(c, "Qwen \"x\"\n\x1b[2J", &err) == OK);
    CHECK(answers_get(c, &one, 1, true, &one) == CLOUD_STORE && one == 151935);
    close_clean(c);
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
        struct answers *c;
        size_t lines = 0, torn = 0;
        for (size_t i = 0; i < n; i++) {
            torn = bytes[i] == '\n' ? 0 : torn + 1;
            lines += bytes[i] == '\n';
        }
        spill(path, bytes, n);
        CHECK(open_with(&c, 0, true) == (lines ? OK : ERR_FORMAT));
        if (c && torn)
            says(c, "left out");
        for (uint32_t i = 0; c && i < SOME; i++)
            CHECK(has(c, i) == (i < lines));
        answers_close(c);
        CHECK(size_of(path) == n);
        c = must_open();
        for (uint32_t i = 0; i < SOME; i++)
            CHECK(has(c, i) == (i < lines));
        if (torn)
            says(c, "cut off");
        silent(c);
        put(c, 77);
        answers_close(c);
        CHECK(size_of(path) == n - torn + line_of(77));
        c = must_open();
        CHECK(has(c, 77) && has(c, 0) == (lines > 0));
        silent_close(c);
    }
    clean();
}

/* Another process tears it while this one has it open, or empties it. */
static void test_torn_open(void)
{
    char bytes[BYTES];
    size_t size = make_some(bytes);
    struct answers *c = must_open();
    spill(path, bytes, size - 1);
    put(c, 78);
    says(c, "torn line");
    CHECK(has(c, 3) && has(c, 78) && size_of(path) == size - line_of(3) + line_of(78));
    spill(path, "", 0);
    put(c, 79);
    CHECK(has(c, 79) && size_of(path) == line_of(79));
    /* Or appends damage without an end, of any length. */
    static char damage[5 * ANSWER_FILE_LINE];
    memset(damage, 'x', sizeof(damage));
    uint32_t last = 79;
    for (size_t n = ANSWER_FILE_LINE - 1; n <= sizeof(damage); n += n / 2) {
        char what[40];
        size_t before = size_of(path);
        append(damage, n);
        put(c, ++last);
        snprintf(what, sizeof(what), "cut off %zu bytes", n);
        says(c, what);
        CHECK(has(c, last) && size_of(path) == before + line_of(last));
    }
    damage[sizeof(damage) - 1] = '\n'; /* or a line that is too long */
    append(damage, sizeof(damage));
    put(c, ++last);
    says(c, "1 damaged");
    answers_close(c);
    c = must_open();
    for (uint32_t i = 79; i <= last; i++)
        CHECK(has(c, i));
    says(c, "1 damaged");
    close_clean(c);
}

/* Each flipped bit costs the answers that it hits and never gives a wrong one. */
static void test_flips(void)
{
    char bytes[BYTES];
    size_t size = make_some(bytes), first = strlen("{\"mizzle_answers\":3,");
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct answers *c;
        size_t at = bit / 8, line = 0;
        bool end = bytes[at] == '\n'; /* of a line, which its next one hits, too */
        for (size_t i = 0; i < at; i++)
            line += bytes[i] == '\n';
        bytes[at] ^= (char)(1 << bit % 8);
        spill(path, bytes, size);
        int rc = open_with(&c, 0, false);
        CHECK(rc == (at < first ? ERR_FORMAT : OK) && (c || strstr(err.msg, path)));
        for (uint32_t i = 0; c && i < SOME; i++)
            CHECK(has(c, i) == (i != line && (!end || i != line + 1)));
        if (c)
            says(c, at + 1 == size ? "torn line" : bytes[at] == '\n' ? "2 damaged" : "1 damaged");
        answers_close(c);
        CHECK(at + 1 == size || size_of(path) == size); /* no whole line is removed */
        bytes[at] ^= (char)(1 << bit % 8);
    }
    clean();
}

/* Lines with a right checksum and wrong fields are damaged; those of others are left alone. */
static void test_fields(void)
{
#define MODEL  "{\"mizzle_answers\":3,\"model\":\"model\",\"tokenizer\":\"0000000000000007\","
#define PREFIX MODEL "\"n\":1,\"prefix\":\"0123456789abcdef0123456789abcdef\""
    static const struct {
        const char *body;
        bool damaged;
    } bad[] = {
        { MODEL "\"n\":1", true },
        { MODEL "\"n\":1,\"prefix\":\"0123456789abcdef0123456789abcde\",\"id\":1", true },
        { MODEL "\"n\":1,\"prefix\":\"0123456789abcdef0123456789abcdef0\",\"id\":1", true },
        { MODEL "\"n\":-1,\"prefix\":\"0123456789abcdef0123456789abcdef\",\"id\":1", true },
        { MODEL "\"n\":99999999999999999999,\"prefix\":\"0123456789abcdef0123456789abcdef\","
                "\"id\":1",
          true },
        { PREFIX, true },
        { PREFIX ",\"id\":-1", true },
        { PREFIX ",\"id\":4294967296", true },
        { PREFIX ",\"id\":99999999999999999999", true },
        { PREFIX ",\"id\":1.5", true },
        { PREFIX ",\"id\":1e9", true },
        { PREFIX ",\"id\":1,\"id\":2", true },
        { PREFIX ",\"id\":\"1\"", true },
        { "\"", false },
        { "{\"mizzle_answers\":3,\"model\":\"model\",[[[", false },
        { "{\"mizzle_answers\":3,\"model\":7,\"tokenizer\":\"0000000000000007\",\"n\":1", false },
    };
    char bytes[BYTES];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[400];
        const char *body = bad[i].body;
        size_t size = make_some(bytes);
        size_t n = (size_t)snprintf(text, sizeof(text), "%s,\"crc\":\"%08x\"}\n", body,
                                    (unsigned)crc32_z(0, (const Bytef *)body, strlen(body)));
        append(text, n);
        struct answers *c = must_open();
        for (uint32_t j = 0; j < SOME; j++)
            CHECK(has(c, j));
        if (bad[i].damaged)
            says(c, "1 damaged");
        silent_close(c);
        CHECK(size_of(path) == size + n);
        spill(path, text, n); /* and alone, where it says whose the answers are */
        struct answers_options o = { .file = path, .offline = true, .tokenizer = 7 };
        if (answers_open(&c, &o, &err) == OK)
            CHECK(answers_server(c, NULL, &err) == ERR_FORMAT);
        close_clean(c);
    }
}

/* Other files are refused and left as they are. */
static void test_strangers(void)
{
    struct answers *c;
    static const struct {
        const char *text, *says;
    } files[] = {
        { "x", "expected a file of answers, {\"mizzle_answers\":3,..., found x" },
        { "MZSTORE\n\1", "found MZSTORE" },
        { "{\"mizzle_record\":1,\"model\":\"m\"", "found {\"mizzle_record\":1,\"model\"" },
        { "{\"mizzle_answers\":4,", "found {\"mizzle_answers\":4," },
        { "{\"mizzle_answers\":2,\"model\":\"m\"", "found {\"mizzle_answers\":2,\"model\"" },
        { "{\"mizzle_answers\":2,\"crc\":\"00000000\"}\n", "found {\"mizzle_answers\":2,\"crc\"" },
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char text[100];
        memset(text, 'x', sizeof(text));
        memcpy(text, files[i].text, strlen(files[i].text));
        size_t n = i ? sizeof(text) : 1;
        spill(path, text, n);
        for (int offline = 0; offline < 2; offline++) {
            CHECK(open_with(&c, 0, offline) == ERR_FORMAT && !c && strstr(err.msg, path));
            CHECK_MSG(strstr(err.msg, files[i].says) && !strchr(err.msg, '\n'), "%s", err.msg);
            CHECK(size_of(path) == n);
        }
    }
    spill(path, "", 0);
    CHECK(open_with(&c, 0, true) == ERR_FORMAT && strstr(err.msg, "found none"));
    CHECK(unlink(path) == 0 && open_with(&c, 0, true) == ERR_IO && !c);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(open_with(&c, 0, false) == ERR_ARG && strstr(err.msg, "regular file"));
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(open_with(&c, 0, false) == ERR_IO && open_with(&c, 0, true) == ERR_ARG);
    CHECK(rmdir(path) == 0);
    /* A file of 1 TB of zeros after some answers is read from its end, then begun anew. */
    char bytes[BYTES];
    make_some(bytes);
    if (truncate(path, (off_t)1 << 40) == 0) {
        c = must_open();
        put(c, 1);
        CHECK(has(c, 1) && size_of(path) == line_of(1));
        answers_close(c);
    }
    clean();
}

/* The error says why the file is not opened. */
static void refused(const char *why)
{
    struct answers *c;
    CHECK(open_with(&c, 0, false) == ERR_IO && !c);
    CHECK_MSG(strstr(err.msg, why), "expected %s, found %s", why, err.msg);
}

/* The target of a symbolic link begins anew. */
static void test_link(void)
{
    struct stat st;
    char real[64], before[80];
    snprintf(real, sizeof(real), "%s/real", folder);
    snprintf(before, sizeof(before), "%s.old", real);
    CHECK(symlink("real", path) == 0);
    struct answers *c = must_open();
    for (uint32_t i = 0; i < 1000; i++)
        put(c, i);
    answers_close(c);
    CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && lstat(real, &st) == 0);
    CHECK(S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= LIMIT);
    CHECK(unlink(path) == 0 && unlink(real) == 0 && unlink(before) == 0);
    CHECK(symlink("kept", path) == 0); /* a link that leads to itself */
    refused("symbolic");
    clean();
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
    answers_close(must_open());
    if (geteuid() != 0) {
        puts("SKIP: files of another user need root");
    } else {
        CHECK(chown(path, 65534, 65534) == 0);
        refused("found one of user 65534");
        CHECK(rename(path, old) == 0); /* nor are those read that have been before */
        struct answers *c = must_open();
        CHECK(!has(c, 0));
        answers_close(c);
        CHECK(unlink(path) == 0 && rename(old, real) == 0 && symlink("real", path) == 0);
        CHECK(chown(real, 0, 0) == 0 && chmod(folder, 01777) == 0);
        answers_close(must_open()); /* one's own link */
        CHECK(lchown(path, 65534, 65534) == 0);
        refused("another user's link");
        CHECK(unlink(real) == 0);
        refused("another user's link");
        CHECK(access(real, F_OK) != 0 && chmod(folder, 0700) == 0);
    }
    clean();
}

/* A file that may only be read answers offline. */
static void test_read_only(void)
{
    char bytes[BYTES];
    uid_t nobody = 65534;
    size_t size = make_some(bytes);
    CHECK(chmod(folder, 0755) == 0 && chmod(path, 0444) == 0);
    bool root = geteuid() == 0; /* root may write everything */
    CHECK(!root || seteuid(nobody) == 0);
    if (access(path, R_OK) == 0) {
        struct answers *c;
        refused(strerror(EACCES));
        CHECK(open_with(&c, 0, true) == OK);
        put(c, 50);
        CHECK(has(c, 1) && has(c, 50) && size_of(path) == size);
        silent_close(c);
    } else {
        printf("SKIP: another user may not come here: no file that may only be read\n");
    }
    CHECK(!root || seteuid(0) == 0);
    clean();
}

/* The limit holds, what was before is read, too, and others notice. */
static void test_anew(void)
{
    struct answers *c = must_open(), *reader;
    CHECK(open_with(&reader, LIMIT, false) == OK);
    for (uint32_t i = 0; i < 3000; i++) {
        put(c, i);
        CHECK(size_of(path) <= LIMIT && has(c, i) && (i < 400 || has(c, i - 400)));
        if (i % 100 == 0)
            CHECK(has(reader, i));
    }
    CHECK(size_of(old) > LIMIT - line_of(1) && size_of(old) <= LIMIT);
    silent(c);
    answers_close(reader);
    answers_close(c);
    c = must_open();
    CHECK(has(c, 2999) && has(c, 2600) && !has(c, 0));
    answers_close(c);
    CHECK(open_with(&c, 0, true) == OK && has(c, 2999) && has(c, 2600) && !has(c, 0));
    answers_close(c);
    /* Open with a smaller limit than before. */
    CHECK(open_with(&c, 10 * LIMIT, false) == OK);
    for (uint32_t i = 10000; i < 12000; i++)
        put(c, i);
    CHECK(size_of(path) > 2 * LIMIT);
    answers_close(c);
    c = must_open();
    put(c, 12000);
    CHECK(size_of(path) == line_of(12000) && has(c, 11999) && !has(c, 10000));
    close_clean(c);
}

/* Where the file cannot begin anew, it stays as it is, and answers are in memory alone. */
static void test_not_anew(void)
{
    struct answers *c = must_open();
    CHECK(mkdir(old, 0700) == 0);
    for (uint32_t i = 0; i < 1000; i++)
        put(c, i);
    CHECK(size_of(path) <= LIMIT && has(c, 0) && has(c, 999));
    says(c, "cannot be renamed to .old");
    CHECK(rmdir(old) == 0);
    put(c, 1000);
    CHECK(size_of(path) == line_of(1000));
    put(c, 999); /* it is written as soon as it is used */
    CHECK(size_of(path) == line_of(1000) + line_of(999));
    close_clean(c);
}

/* A file named without a slash lies in the current folder; an error there has name and reason. */
static void test_bare_name(void)
{
    char home[4096], whole[64];
    CHECK(getcwd(home, sizeof(home)) && chmod(folder, 0755) == 0 && chdir(folder) == 0);
    memcpy(whole, path, sizeof(whole));
    memcpy(path, "kept", sizeof("kept"));
    struct answers *c = must_open();
    for (uint32_t i = 0; i < 1000; i++)
        put(c, i);
    CHECK(size_of(path) <= LIMIT && size_of("kept.old") <= LIMIT);
    silent_close(c);
    CHECK(unlink("kept") == 0 && unlink("kept.old") == 0);
    bool root = geteuid() == 0; /* who may write everything */
    CHECK(chmod(".", 0555) == 0 && (!root || seteuid(65534) == 0));
    refused(path);
    refused(strerror(EACCES));
    CHECK(!root || seteuid(0) == 0);
    CHECK(chdir(home) == 0 && chmod(folder, 0700) == 0);
    memcpy(path, whole, sizeof(path));
}

/* Without room beyond a certain byte, for every such byte, the file keeps whole lines; with room
 * again, an answer is written when it is used. */
static void test_full_disk(void)
{
    struct rlimit was, now;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &was) == 0);
    const size_t two = line_of(0) + line_of(1), three = two + line_of(2);
    for (rlim_t most = 0; most < three; most++) {
        struct answers *c = must_open();
        now = was;
        now.rlim_cur = most;
        CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
        for (uint32_t i = 0; i < 3; i++)
            put(c, i);
        CHECK(size_of(path) == (most < line_of(0) ? 0 : most < two ? line_of(0) : two));
        CHECK(has(c, 0) && has(c, 1) && has(c, 2));
        says(c, "cannot write: ");
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        for (uint32_t i = 0, id; i < 4; i++)
            if (i < 3)
                answers_get(c, &i, 1, true, &id);
            else
                put(c, i);
        CHECK(size_of(path) == three + line_of(3));
        answers_close(c);
        c = must_open();
        CHECK(has(c, 0) && has(c, 1) && has(c, 2) && has(c, 3));
        silent_close(c);
        clean();
    }
}

int main(void)
{
    begin();
    test_text();
    test_torn();
    test_torn_open();
    test_flips();
    test_fields();
    test_strangers();
    test_link();
    test_planted();
    test_read_only();
    test_anew();
    test_not_anew();
    test_bare_name();
    test_full_disk();
    CHECK(rmdir(folder) == 0);
    return 0;
}
