/* The end of the process where going on would lose or corrupt something: memory is out. */
#ifndef BASE_DIE_H
#define BASE_DIE_H

void rung_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* malloc family that ends the process when memory is out. */
void *rung_xmalloc(unsigned long size);
void *rung_xcalloc(unsigned long n, unsigned long size);
void *rung_xrealloc(void *p, unsigned long size);
char *rung_xstrdup(const char *text);

#endif
