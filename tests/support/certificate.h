/* certificate.h - a self-signed certificate for 127.0.0.1, which is removed at the end. */
#ifndef TESTS_SUPPORT_CERTIFICATE_H
#define TESTS_SUPPORT_CERTIFICATE_H

#include "tests/support/test.h"

static const char *cert; /* path of a PEM file with both certificate and key */

/* Make it with the openssl command; false if that is not possible. */
static inline bool certificate_make(void)
{
    char line[512];
    cert = in_scratch("a.pem");
    snprintf(line, sizeof(line),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=mizzle-test -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
             ">/dev/null 2>&1",
             cert, cert);
    return system(line) == 0;
}

#endif
