#include "tools/lab/clock/ahead_model.h"

struct model {
    double *at; /* [n] */
    size_t n;
    double t, now;  /* ms */
    size_t decided; /* number of tokens that are part of the text */
    size_t next;    /* token to write next */
    bool flying;    /* the call for token `asked` is in flight, and answered at `due` */
    size_t asked;
    double due;
};

/* Continue after `token`: the next token needs this one evaluated, except after the last. Without a
 * call in flight, all tokens so far are decided. */
static void ahead_model_step(struct model *m, size_t token)
{
    m->next = token + 1;
    for (; !m->flying && m->decided < m->next; m->decided++)
        m->at[m->decided] = m->now;
    if (m->next < m->n)
        m->now += m->t;
}

void ahead_model_decisions(double *at, const unsigned char *marks, const double *calls, size_t n,
                           double t, bool ahead)
{
    struct model m = { .at = at, .n = n, .t = t };
    while (m.next < n || m.flying) {
        bool routed = m.next < n && marks[m.next] & AHEAD_MODEL_ROUTED;
        bool waits = m.flying && (m.next == n || routed);
        if (waits && m.due > m.now)
            m.now = m.due;
        /* What comes just as a step ends is seen after the next: a real call takes a little more.
         */
        if (m.flying && (waits ? m.due <= m.now : m.due < m.now)) {
            m.flying = false;
            if (!(marks[m.asked] & AHEAD_MODEL_AGREES)) {
                ahead_model_step(&m, m.asked);
                continue;
            }
            for (; m.decided < m.next; m.decided++)
                at[m.decided] = m.now;
            continue;
        }
        if (routed && ahead) {
            m.flying = true;
            m.asked = m.next;
            m.due = m.now + calls[m.next];
        } else if (routed) {
            m.now += calls[m.next];
        }
        ahead_model_step(&m, m.next);
    }
}
