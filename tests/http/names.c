#include "names.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int asked, hanging, let_go;

int names_asked(void)
{
    return asked;
}

int names_hanging(void)
{
    return hanging;
}

void names_let_go(void)
{
    let_go = 1;
}

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
    struct in6_addr number;
    lookup *systems;
    *(void **)&systems = dlsym(RTLD_NEXT, "getaddrinfo");
    if (inet_pton(AF_INET, name, &number) != 1 && inet_pton(AF_INET6, name, &number) != 1)
        asked++;
    if (strcmp(name, "slow.test") != 0)
        return systems(name, service, hints, out);
    hanging++;
    while (!let_go)
        usleep(10 * 1000);
    hanging--;
    return EAI_NONAME;
}
