/* Tests what a client is opened with: URLs and keys, the hosts to which a key may go, no key in
 * freed memory, and files of certificates. Descriptors may have run out. Nothing may wait for
 * ever. */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kernels/sys/wipe.h"
#include "net/cloud_internal.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"

static const uint32_t prompt[] = { 1, 2, 3 };

static void test_urls(void)
{
    static const char *const bad[] = {
        "",           "127.0.0.1:80",        "ftp://h/",      "file:///etc/passwd",
        "http://",    "http://a b/",         "http://h/?q=1", "http://h/#f",
        "http://h\n", "http://name:pw@h/",   "http://n@h/",   "http://h:99999/",
        "HTTP//h",    "http://h\xc3\xa9ro/", "http://[::1/",  "http:///v1",
    };
    static const char *const good[] = { "http://h", "https://h:1/v1/", "http://[::1]:8080/base",
                                        "http://127.0.0.1:9///" };
    struct cloud_options o = { .api = CLOUD_LLAMACPP, .vocab = 10 };
    struct cloud *c;
    struct err err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o.url = bad[i];
        CHECK_MSG(cloud_open(&c, &o, &err) == ERR_ARG && !c && *err.msg && !strstr(err.msg, "pw@"),
                  "accepted: %s", bad[i]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        o.url = good[i];
        /* With a named dialect cloud_open asks the server nothing. */
        CHECK(cloud_open(&c, &o, &err) == OK);
        uint32_t id = 77;
        CHECK(port_next(c, prompt, 0, &id, &err) == ERR_ARG);
        CHECK(port_next(c, (const uint32_t[]){ 10 }, 1, &id, &err) == ERR_ARG && id == 77);
        CHECK(cloud_ledger(c)->calls == 0 && cloud_known_info(c).api == CLOUD_LLAMACPP);
        cloud_close(c);
    }
    o.key = "two\r\nlines: x";
    CHECK(cloud_open(&c, &o, &err) == ERR_ARG && !strstr(err.msg, "lines"));
    o.key = NULL;
    o.model = "\xff";
    CHECK(cloud_open(&c, &o, &err) == ERR_ARG);
    enum cloud_api api;
    CHECK(cloud_api_parse(&api, "llamacpp") && api == CLOUD_LLAMACPP);
    CHECK(!cloud_api_parse(&api, "chat") && strcmp(cloud_api_name(CLOUD_OPENAI), "openai") == 0);
}

/* A /v1 at the end of the URL is left out, and the host is not. */
static void test_bases(void)
{
    static const char *const cases[][2] = {
        { "http://h/v1", "http://h" },
        { "http://h/v1/", "http://h" },
        { "http://v1", "http://v1" },
        { "http://v1/", "http://v1" },
        { "https://v1/v1//", "https://v1" },
        { "http://h/a/v1", "http://h/a" },
        { "http://h//v1", "http://h" },
        { "http://h/v1/v1", "http://h/v1" },
        { "http://h:80/xv1", "http://h:80/xv1" },
    };
    char *base;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK(cloud_url_check(&base, cases[i][0], NULL) == OK);
        CHECK_MSG(strcmp(base, cases[i][1]) == 0, "%s: %s", cases[i][0], base);
        free(base);
    }
}

static int key_from(const char *text, size_t n, char **key)
{
    const char *path = in_scratch("key");
    struct err note, err = { "" };
    spill(path, text, n);
    int rc = api_key_read(key, NULL, path, NULL, NULL, &note, &err);
    CHECK(!rc == (*key != NULL) && !*note.msg && !strstr(err.msg, "secret"));
    return rc;
}

static void set(const char *name, const char *value)
{
    CHECK((value ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

/* Check which key the environment gives for a server, and which note comes with it. */
static void from_variables(const char *mizzle, const char *openai, const char *url,
                           const char *want, const char *says)
{
    struct err note, err;
    char *key;
    set("MIZZLE_API_KEY", mizzle);
    set("OPENAI_API_KEY", openai);
    CHECK(api_key_read(&key, NULL, NULL, url, NULL, &note, &err) == OK);
    bool right = want ? key && strcmp(key, want) == 0 : !key;
    CHECK_MSG(right && strstr(note.msg, says) && !*note.msg == !*says, "%s: %s, %s", url,
              key ? key : "no key", note.msg);
    free(key);
    set("MIZZLE_API_KEY", NULL);
    set("OPENAI_API_KEY", NULL);
}

static void test_keys(void)
{
    static char big[10000];
    char *key;
    struct err err;
    CHECK(key_from("  sk-1 \r\n", 9, &key) == OK && strcmp(key, "sk-1") == 0);
    free(key);
    memset(big, 'k', sizeof(big));
    CHECK(key_from("", 0, &key) == ERR_ARG && key_from("\n", 1, &key) == ERR_ARG);
    CHECK(key_from("secret\nsecret", 13, &key) == ERR_ARG);
    CHECK(key_from("secret\0x", 8, &key) == ERR_ARG);
    CHECK(key_from("secret\xc3\xa9", 8, &key) == ERR_ARG);
    CHECK(key_from(big, sizeof(big), &key) == ERR_ARG);
    struct err note;
    CHECK(api_key_read(&key, NULL, "build/no-such-key", NULL, NULL, &note, &err) == ERR_IO && !key);
    from_variables(NULL, NULL, "https://h", NULL, "");
    from_variables(NULL, "second", "https://h", "second", "");
    from_variables("first", "second", "https://h", "first", "");
    from_variables("", "second", "https://h", "second", "");
}

/* The hosts to which a key may go unencrypted; the one for another server goes to none. */
static void test_key_hosts(void)
{
    static const char *const near[] = {
        "https://h.example",        "http://localhost:8080", "http://LOCALHOST/v1",
        "http://127.0.0.1:1/v1",    "http://127.9.8.7",      "http://[::1]:8080/base",
        "http://[0:0:0:0:0:0:0:1]",
    };
    static const char *const far[] = {
        "http://h.example", "http://10.0.0.1:8000",   "http://[fe80::1]",
        "http://[::]",      "http://127.0.0.1.h.org", "http://localhost.h.org",
        "http://0.0.0.0",   "http://128.0.0.1",       "http://127host",
        "httpsx://h",
    };
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        bool tls = strncmp(near[i], "https:", 6) == 0;
        from_variables(NULL, "second", near[i], tls ? "second" : NULL, "");
        from_variables("first", "second", near[i], "first", "");
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        from_variables(NULL, NULL, far[i], NULL, "");
        from_variables(NULL, "second", far[i], NULL, "OPENAI_API_KEY is not sent");
        from_variables("first", "second", far[i], "first", "goes over plain http");
    }
}

/* No block is freed with the key in it, and none that holds it is leaked. */
static void test_key_wiped(void)
{
    static const char secret[] = "sk-to-be-wiped-0123456789";
    struct err note, err;
    struct cloud *c;
    char *key;
    uint32_t id;
    torture_watch(secret);
    CHECK(key_from(secret, sizeof(secret) - 1, &key) == OK);
    free(key);
    CHECK(torture_left() == 1); /* a block with the key in it would be found */
    torture_watch(secret);
    CHECK(key_from(secret, sizeof(secret) - 1, &key) == OK);
    setenv("OPENAI_API_KEY", secret, 1);
    char *other;
    CHECK(api_key_read(&other, NULL, NULL, "http://h", NULL, &note, &err) == OK && !other);
    const struct cloud_options o = {
        .url = "http://127.0.0.1:1", .api = CLOUD_LLAMACPP, .key = key, .vocab = 10
    };
    CHECK(cloud_open(&c, &o, &err) == OK && port_next(c, prompt, 3, &id, &err) == ERR_NET);
    cloud_close(c);
    wipe_text(key);
    wipe_text(NULL);
    CHECK(torture_left() == 0);
    torture_watch(NULL);
    unsetenv("OPENAI_API_KEY");
}

#if defined(__SANITIZE_THREAD__)
#define TSAN true
#elif defined(__has_feature)
#define TSAN __has_feature(thread_sanitizer)
#else
#define TSAN false
#endif

enum {
    HANGS = 30, /* seconds until a test counts as hanging; each takes one at most */
    MOST = 24   /* a number of descriptors that is enough */
};

static const char good_reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"tokens\":[42]}";

/* Make one call with a limited number of descriptors. Returns 0 when it succeeded, 1 when it failed
 * as it should, else 2. */
static int call_with(const char *url, rlim_t descriptors)
{
    struct err err = { "" };
    struct cloud *c;
    uint32_t id = 0;
    alarm(HANGS);
    for (int fd = 3; fd < 100; fd++)
        close(fd);
    const struct rlimit most = { descriptors, descriptors };
    if (setrlimit(RLIMIT_NOFILE, &most))
        return 2;
    const struct cloud_options o = {
        .url = url, .api = CLOUD_LLAMACPP, .model = "m", .vocab = 100, .timeout_ms = 500
    };
    int rc = cloud_open(&c, &o, &err);
    if (rc == OK) {
        rc = port_next(c, (const uint32_t[]){ 1, 2 }, 2, &id, &err);
        cloud_close(c);
    }
    if (rc == OK)
        return id == 42 ? 0 : 2;
    return rc == ERR_NET && *err.msg ? 1 : 2;
}

/* Every number of descriptors gives an answer or a clean error. */
static void test_descriptors(struct rude *server)
{
    if (TSAN) { /* which ends a child that starts threads */
        fprintf(stderr, "SKIP: few descriptors, under the thread sanitizer\n");
        return;
    }
    static const char *const hosts[] = { "127.0.0.1", "localhost" };
    rude_play(server, RUDE_KEEP, good_reply);
    for (size_t host = 0; host < 2; host++)
        for (rlim_t n = 3; n <= MOST; n++) {
            char url[64];
            int status;
            snprintf(url, sizeof(url), "http://%s:%u", hosts[host], rude_port(server));
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (!pid)
                _exit(call_with(url, n));
            CHECK(waitpid(pid, &status, 0) == pid);
            bool right = WIFEXITED(status) && WEXITSTATUS(status) < (n == MOST ? 1 : 2) &&
                         (n > 4 || WEXITSTATUS(status) == 1);
            CHECK_MSG(right, "%s, %d descriptors: status %x", url, (int)n, (unsigned)status);
        }
}

/* cloud_open refuses the CA file, and names it. */
static void refused(const char *file, const char *says)
{
    struct err err = { "" };
    struct cloud *c;
    const struct cloud_options o = {
        .url = "https://h", .api = CLOUD_LLAMACPP, .ca = file, .vocab = 100
    };
    alarm(HANGS);
    int rc = cloud_open(&c, &o, &err);
    alarm(0);
    CHECK_MSG(rc == ERR_ARG && !c && strstr(err.msg, file) && strstr(err.msg, says), "%s", err.msg);
}

static void test_certificates(void)
{
    const char *path = in_scratch("a.pem");
    refused("build/no-such.pem", "No such file");
    refused("build", "regular file");
    refused("/dev/zero", "regular file");
    CHECK(mkfifo(path, 0600) == 0);
    refused(path, "regular file");
    CHECK(unlink(path) == 0);
    spill(path, "no certificate\n", 15);
    refused(path, "PEM");
    CHECK(truncate(path, ((off_t)4 << 20) + 1) == 0);
    refused(path, "4 MiB");
    if (truncate(path, (off_t)1 << 40) == 0)
        refused(path, "4 MiB");
}

int main(void)
{
    test_urls();
    test_bases();
    test_keys();
    test_key_hosts();
    test_key_wiped();
    struct rude *server = rude_open(NULL);
    test_certificates();
    test_descriptors(server);
    rude_close(server);
    return 0;
}
