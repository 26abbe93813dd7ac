/* certificate.h - a self-signed certificate for 127.0.0.1, in a folder of its own under build/. */
#ifndef TESTS_SUPPORT_CERTIFICATE_H
#define TESTS_SUPPORT_CERTIFICATE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/test.h"

static char certificate_dir[] = "build/tls-XXXXXX";
static char cert[64], key[64]; /* paths of PEM files */

/* Make it with the openssl command; false if that is not possible. */
static inline bool certificate_make(void)
{
    char line[512];
    CHECK(mkdtemp(certificate_dir));
    snprintf(cert, sizeof(cert), "%s/a.crt", certificate_dir);
    snprintf(key, sizeof(key), "%s/a.key", certificate_dir);
    snprintf(line, sizeof(line),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=mizzle-test -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
             ">/dev/null 2>&1",
             key, cert);
    return system(line) == 0;
}

static inline void certificate_remove(void)
{
    remove(cert);
    remove(key);
    rmdir(certificate_dir);
}

#endif
