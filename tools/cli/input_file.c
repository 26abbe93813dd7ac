#include "tools/cli/input_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/text.h"

int input_file_read(char **text, size_t *n, const char *path, size_t most, struct err *err)
{
    char part[16384];
    struct buf out = { 0 };
    bool standard = strcmp(path, "-") == 0, fine = true;
    const char *name = standard ? "standard input" : path;
    FILE *f = standard ? stdin : fopen(path, "rb");
    *text = NULL;
    *n = 0;
    if (!f)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    for (size_t got; fine && out.n <= most && (got = fread(part, 1, sizeof(part), f)) > 0;)
        fine = buf_add(&out, part, got);
    int rc = OK;
    if (out.n > most)
        rc = err_set(err, ERR_FORMAT, "%s: expected at most %zu bytes", name, most);
    else if (!fine || !buf_add(&out, "", 1))
        rc = err_set(err, ERR_NOMEM, "%s: out of memory", name);
    else if (ferror(f))
        rc = errno == EINTR ? err_set(err, ERR_STOP, "interrupted")
                            : err_set(err, ERR_IO, "%s: %s", name, strerror(errno));
    if (!standard)
        fclose(f);
    if (rc != OK) {
        buf_free(&out);
        return rc;
    }
    *text = out.p;
    *n = out.n - 1 - text_mark(out.p, out.n - 1);
    memmove(out.p, out.p + out.n - 1 - *n, *n + 1);
    return OK;
}
