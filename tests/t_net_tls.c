/* TLS: an unknown authority and a wrong name are refused, a named authority is accepted, and a
 * server that hangs up costs no signal. The server is `openssl s_server`; this program talks
 * through its pipes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "net/cloud.h"
#include "tests/test.h"

#define BODY "{\"choices\":[{\"text\":\"\",\"token_ids\":[42]}]}"

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" BODY;
static char dir[] = "build/tls-XXXXXX", cert[64], private_key[64], other[64], other_key[64];
static unsigned port;
static pid_t running; /* the server, 0: none */

static bool make_certificate(const char *crt, const char *key)
{
    char line[512];
    snprintf(line, sizeof(line),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=mizzle-test -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
             ">/dev/null 2>&1",
             key, crt);
    return system(line) == 0;
}

/* A port that was free a moment ago. */
static unsigned free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

struct server {
    pid_t pid;
    int in, out; /* what we write goes to the client; what the client sent is read here */
};

/* Also where a CHECK ends the program: no server is left behind. */
static void end_server(void)
{
    if (running)
        kill(running, SIGKILL);
}

static void start(struct server *s)
{
    int to[2], from[2];
    char accept[32];
    port = free_port();
    snprintf(accept, sizeof(accept), "127.0.0.1:%u", port);
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    s->pid = fork();
    CHECK(s->pid >= 0);
    if (s->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        dup2(from[1], 2);
        close(to[1]);
        close(from[0]);
        execlp("openssl", "openssl", "s_server", "-quiet", "-accept", accept, "-cert", cert, "-key",
               private_key, (char *)NULL);
        _exit(127);
    }
    running = s->pid;
    close(to[0]);
    close(from[1]);
    s->in = to[1];
    s->out = from[0];
}

static void stop(struct server *s)
{
    int status;
    end_server();
    waitpid(s->pid, &status, 0);
    running = 0;
    close(s->in);
    close(s->out);
}

static struct cloud *client(const char *host, const char *ca, unsigned timeout_ms)
{
    char url[64];
    struct err err = { "" };
    struct cloud *c;
    snprintf(url, sizeof(url), "https://%s:%u", host, port);
    const struct cloud_options o = { .url = url,
                                     .api = CLOUD_OPENAI,
                                     .model = "m",
                                     .ca = ca,
                                     .key = "secret",
                                     .timeout_ms = timeout_ms,
                                     .vocab = 100 };
    CHECK(cloud_open(&c, &o, &err) == OK);
    return c;
}

/* One call; until the server listens, "refused" is tried again. */
static int call(struct cloud *c, uint32_t *id, struct err *err)
{
    const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
    for (int i = 0;; i++) {
        int rc = cloud_next(c, (const uint32_t[]){ 1, 2 }, 2, id, err);
        if (i == 500 || rc != ERR_NET || !strstr(err->msg, "connect"))
            return rc;
        nanosleep(&pause, NULL);
    }
}

static void refused(const char *host, const char *ca)
{
    struct err err = { "" };
    uint32_t id = 77;
    struct cloud *c = client(host, ca, 5000);
    int rc = call(c, &id, &err);
    if (rc != ERR_NET || !strstr(err.msg, "certificate"))
        fprintf(stderr, "%d %s\n", rc, err.msg);
    CHECK(rc == ERR_NET && id == 77 && strstr(err.msg, "certificate") &&
          !strstr(err.msg, "secret"));
    cloud_close(c);
}

/* The reply is put into the pipe first: s_server passes it on as soon as a client is there. */
static void accepted(const struct server *s)
{
    struct err err = { "" };
    uint32_t id = 0;
    struct cloud *c = client("127.0.0.1", cert, 5000);
    CHECK(write(s->in, reply, sizeof(reply) - 1) == (ssize_t)sizeof(reply) - 1);
    int rc = call(c, &id, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK && id == 42);
    cloud_close(c);
}

/* The key never left before the certificate was checked. */
static void nothing_leaked(const struct server *s)
{
    static char seen[1 << 16];
    size_t n = 0;
    for (struct pollfd p = { .fd = s->out, .events = POLLIN };
         poll(&p, 1, 50) > 0 && n + 1 < sizeof(seen);) {
        ssize_t got = read(s->out, seen + n, sizeof(seen) - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    seen[n] = 0;
    CHECK(!strstr(seen, "secret"));
}

int main(void)
{
    struct server s;
    CHECK(mkdtemp(dir) && atexit(end_server) == 0);
    snprintf(cert, sizeof(cert), "%s/a.crt", dir);
    snprintf(private_key, sizeof(private_key), "%s/a.key", dir);
    snprintf(other, sizeof(other), "%s/b.crt", dir);
    snprintf(other_key, sizeof(other_key), "%s/b.key", dir);
    bool made = make_certificate(cert, private_key) && make_certificate(other, other_key);
    if (made) {
        start(&s);
        refused("127.0.0.1", NULL);
        refused("127.0.0.1", other);
        refused("localhost", cert);
        nothing_leaked(&s);
        accepted(&s);
        stop(&s);
    }
    remove(cert);
    remove(private_key);
    remove(other);
    remove(other_key);
    rmdir(dir);
    if (made)
        return 0;
    puts("SKIP: TLS: no openssl command to make a certificate with");
    return 77;
}
