#include "tools/stand_in/header_checks.h"

#include <string.h>

static const char *admit_header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Compare all bytes whatever differs, so that timing reveals nothing. */
static bool same_key(const char *sent, const char *key)
{
    size_t n = strlen(sent), k = strlen(key), differ = n ^ k;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)sent[i] ^ (unsigned char)key[k ? i % k : 0];
    return differ == 0;
}

bool stand_in_header_checks_key(struct MHD_Connection *c, const char *key)
{
    const char *sent = admit_header(c, "Authorization");
    return sent && strncmp(sent, "Bearer ", 7) == 0 && same_key(sent + 7, key);
}

/* vLLM and SGLang read a /v1 body only if it is declared as JSON. */
bool stand_in_header_checks_media(struct MHD_Connection *c, enum stand_in_server played,
                                  const char *path)
{
    const char *type = admit_header(c, "Content-Type");
    if ((played != STAND_IN_OPENAI && played != STAND_IN_SGLANG) || strncmp(path, "/v1/", 4) != 0)
        return true;
    return type && strncmp(type, "application/json", 16) == 0 &&
           (!type[16] || type[16] == ';' || type[16] == ' ');
}

bool stand_in_header_checks_length(struct MHD_Connection *c)
{
    return !admit_header(c, "Content-Length") || !admit_header(c, "Transfer-Encoding");
}
