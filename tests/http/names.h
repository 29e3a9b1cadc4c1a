/*
 * A name service for tests: this getaddrinfo, which libcurl finds before the system's, counts what
 * it is asked, and "slow.test" has no answer until the test lets go.
 */
#ifndef TESTS_HTTP_NAMES_H
#define TESTS_HTTP_NAMES_H

/* Lookups of names, numbers not counted, since the start. */
int names_asked(void);
/* Lookups of slow.test that hang now. */
int names_hanging(void);
/* Ends these, now and from now on. */
void names_let_go(void);

#endif
