#include "tools/cli/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/sys/base.h"

int output_file_open(struct output_file *o, const char *path, struct err *err)
{
    struct stat st;
    char target[ATOMIC_FILE_NAME];
    int rc = OK;
    *o = (struct output_file){ .path = path };
    if (!path)
        return OK;
    if (!*path)
        return err_set(err, ERR_ARG, "expected the name of a file to write, found ''");
    if (strcmp(path, "-") == 0) {
        o->f = stdout;
    } else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        rc = atomic_file_target(target, path, err); /* of /dev/stdout it may not exist */
        o->f = rc == OK ? fopen(path, "wb") : NULL;
        if (rc == OK && !o->f)
            rc = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    } else {
        rc = atomic_file_open(&o->part, path, err);
        o->f = o->part.f;
    }
    return rc;
}

int output_file_close(struct output_file *o, bool commit, struct err *err)
{
    FILE *f = o->f;
    o->f = NULL;
    if (!f || o->part.f)
        return atomic_file_close(&o->part, commit, err);
    bool bad = ferror(f) != 0;
    bad = (f == stdout ? fflush(f) : fclose(f)) != 0 || bad;
    return bad && commit ? err_set(err, ERR_IO, "%s: %s", o->path, strerror(errno)) : OK;
}

int output_file_check(const char *path, struct err *err)
{
    struct output_file o;
    struct stat st;
    char target[ATOMIC_FILE_NAME];
    if (path && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return atomic_file_target(target, path, err); /* to close a pipe would end its reader */
    int rc = output_file_open(&o, path, err);
    return rc == OK ? output_file_close(&o, false, NULL) : rc;
}
