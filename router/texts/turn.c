#include "router/texts/turn.h"

void turn_open(struct turn *t)
{
    *t = (struct turn){ .next = 0 };
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
}

void turn_close(struct turn *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

void turn_take(struct turn *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    for (uint64_t mine = t->next++; mine != t->now;)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void turn_give(struct turn *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->now++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}
