#include "router/breaker.h"

bool breaker_allows(const struct breaker *b)
{
    return b->held == 0;
}

void breaker_held(struct breaker *b)
{
    if (b->held)
        b->held--;
}

bool breaker_probes(const struct breaker *b)
{
    return b->pause > 0;
}

void breaker_result(struct breaker *b, bool probe, bool answered)
{
    if (answered) {
        *b = (struct breaker){ 0 };
        return;
    }
    if (b->pause && !probe) /* it was requested before the breaker opened */
        return;
    if (b->pause)
        b->pause = b->pause < BREAKER_MAX_PAUSE / 2 ? b->pause * 2 : BREAKER_MAX_PAUSE;
    else if (++b->faults >= BREAKER_FAULTS)
        b->pause = BREAKER_PAUSE;
    b->held = b->pause;
}
