/* Tests cloud_open on a machine that lacks something: file descriptors may have run out, and the
 * file of certificates may be missing or endless. Nothing may wait for ever. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/cloud.h"
#include "tests/support/files.h"
#include "tests/support/rude.h"

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

static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"tokens\":[42]}";

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
        rc = cloud_next(c, (const uint32_t[]){ 1, 2 }, 2, &id, &err);
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
    rude_play(server, RUDE_KEEP, good);
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
    struct rude *server = rude_open(NULL);
    test_certificates();
    test_descriptors(server);
    rude_close(server);
    return 0;
}
