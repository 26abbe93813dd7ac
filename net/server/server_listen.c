#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/server/server_internal.h"

enum { PEM_MAX = 256 << 10, BACKLOG = 1024 };

/* Return a listening socket, or -1 with errno set. */
static int server_listen_try(const struct addrinfo *a)
{
    int on = 1, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* True for ::1 and 127.0.0.0/8. */
static bool server_listen_is_loopback(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr) >> 24 == 127;
}

/* Find the address; NULL if the host is none. */
static struct addrinfo *server_listen_find(const char *host, unsigned port)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *found;
    char service[12];
    snprintf(service, sizeof(service), "%u", port);
    host = !host || strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    return getaddrinfo(host, service, &hints, &found) ? NULL : found;
}

/* Set port and URL from the listening socket. */
static int server_listen_name(struct server *s, const char *host, struct err *err)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);
    if (getsockname(s->listener, (struct sockaddr *)&at, &len))
        return err_set(err, ERR_NET, "getsockname: %s", strerror(errno));
    bool six = at.ss_family == AF_INET6;
    s->port = ntohs(six ? ((struct sockaddr_in6 *)&at)->sin6_port
                        : ((struct sockaddr_in *)&at)->sin_port);
    const char *shown = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
                        : strcmp(host, "::") == 0    ? "::1"
                                                     : host;
    snprintf(s->url, sizeof(s->url), six ? "%s://[%s]:%u" : "%s://%s:%u", s->tls ? "https" : "http",
             shown, s->port);
    return OK;
}

int server_listen_open(struct server *s, struct err *err)
{
    const char *host = s->o.host ? s->o.host : "127.0.0.1";
    if (s->o.port > 65535)
        return err_set(err, ERR_ARG, "port: expected 0 to 65535, found %u", s->o.port);
    struct addrinfo *found = server_listen_find(host, s->o.port);
    if (!found)
        return err_set(err, ERR_ARG, "host: expected an IP address of this machine, found %s",
                       host);
    bool safe = s->o.key || server_listen_is_loopback(found->ai_addr);
    s->listener = safe ? server_listen_try(found) : -1;
    int why = errno;
    freeaddrinfo(found);
    if (!safe)
        return err_set(err, ERR_ARG, "host %s: others reach it, so it needs a key: api_key_file",
                       host);
    if (s->listener < 0)
        return err_set(err, ERR_NET, "cannot listen on %s port %u: %s%s", host, s->o.port,
                       strerror(why), why == EADDRINUSE ? "; try --port" : "");
    return server_listen_name(s, host, err);
}

int server_listen_tls(struct server *s, struct err *err)
{
    const char *path = s->o.tls;
    if (path && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(err, ERR_ARG, "TLS: this libmicrohttpd was built without it");
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!path)
        return OK;
    if (!f)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    char *text = calloc(1, PEM_MAX + 1);
    size_t n = text ? fread(text, 1, PEM_MAX, f) : 0;
    bool bad = ferror(f) != 0, more = !feof(f);
    fclose(f);
    s->tls = text;
    if (!text)
        return err_set(err, ERR_NOMEM, "server: out of memory");
    if (bad || more || !n || !strstr(text, "-----BEGIN "))
        return err_set(err, ERR_FORMAT, "%s: expected a PEM file of at most %d bytes", path,
                       PEM_MAX);
    return OK;
}
