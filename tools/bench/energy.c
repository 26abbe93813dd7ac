#include "tools/bench/energy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PACKAGES = 16, PARTS = 8 };

/* Read the first line of root/zone/file. False: errno says why. */
static bool energy_line(char line[64], const char *root, const char *zone, const char *file)
{
    char path[ENERGY_PATH];
    if (snprintf(path, sizeof(path), "%s/%s/%s", root, zone, file) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *f = fopen(path, "r");
    bool fine = f && fgets(line, 64, f);
    int why = errno;
    if (f)
        fclose(f);
    if (fine)
        line[strcspn(line, "\n")] = 0;
    errno = why;
    return fine;
}

/* Read a counter. */
static bool energy_counter(uint64_t *out, const char *path)
{
    FILE *f = fopen(path, "r");
    bool fine = f && fscanf(f, "%" SCNu64, out) == 1;
    int why = errno;
    if (f)
        fclose(f);
    errno = why;
    return fine;
}

/* Add a zone if it is one of those that count. False: it is, and cannot be read. */
static bool energy_add(struct energy *e, const char *root, const char *zone, char why[ENERGY_WHY])
{
    char name[64], range[64] = "0";
    if (!energy_line(name, root, zone, "name") ||
        (strncmp(name, "package", 7) != 0 && strcmp(name, "dram") != 0) || e->n == ENERGY_ZONES)
        return true;
    snprintf(e->zone[e->n].path, ENERGY_PATH, "%s/%s/energy_uj", root, zone);
    energy_line(range, root, zone, "max_energy_range_uj");
    sscanf(range, "%" SCNu64, &e->zone[e->n].range);
    errno = 0;
    if (energy_counter(&e->zone[e->n].last, e->zone[e->n].path)) {
        e->n++;
        return true;
    }
    snprintf(why, ENERGY_WHY, "%s: %s", e->zone[e->n].path,
             errno ? strerror(errno) : "expected a number");
    e->n = 0;
    return false;
}

bool energy_open(struct energy *e, const char *root, char why[ENERGY_WHY])
{
    bool fine = true;
    *e = (struct energy){ 0 };
    for (int i = 0; i < PACKAGES && fine; i++) {
        char zone[32];
        snprintf(zone, sizeof(zone), "intel-rapl:%d", i);
        fine = energy_add(e, root, zone, why);
        for (int k = 0; k < PARTS && fine; k++) {
            snprintf(zone, sizeof(zone), "intel-rapl:%d:%d", i, k);
            fine = energy_add(e, root, zone, why);
        }
    }
    if (fine && !e->n)
        snprintf(why, ENERGY_WHY, "no energy counters (RAPL) in %.*s", ENERGY_PATH, root);
    return e->n;
}

double energy_joules(struct energy *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        uint64_t now, last = e->zone[i].last;
        if (!energy_counter(&now, e->zone[i].path))
            return (double)NAN;
        sum += (double)(now >= last ? now - last : now + e->zone[i].range - last) / 1e6;
        e->zone[i].last = now;
    }
    return e->n ? sum : (double)NAN;
}
