/* The process between an opener and its program: see program.h. One thread; no memory of its own.
 */
#include "worker/process/program.h"
#include "worker/process/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: never returns unless the program can't be executed. */
static _Noreturn void become(char **argv, pid_t keeper, int report)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) /* it died before the line above */
        _exit(1);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    int32_t why = errno;
    (void)!write(report, &why, sizeof(why));
    _exit(127);
}

/* 0 once the program runs, else an errno. */
static int32_t start(char **argv, pid_t *child)
{
    int report[2];
    int32_t why = 0;
    pid_t keeper = getpid();
    if (pipe2(report, O_CLOEXEC))
        return errno;
    *child = fork();
    if (*child == 0)
        become(argv, keeper, report[1]);
    if (*child < 0)
        why = errno;
    close(report[1]);
    if (!why && read(report[0], &why, sizeof(why)) != sizeof(why))
        why = 0; /* closed by exec */
    close(report[0]);
    return why;
}

/* So that the opener sees the end of a pipe when the program closes its own. */
static void let_go(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (nothing < 0 || dup2(nothing, fd) < 0)
            close(fd);
}

int process_keeper_main(char **argv)
{
    sigset_t all, ended;
    pid_t child = -1;
    int status;
    prctl(PR_SET_NAME, "rung-keeper");
    close_range(PROCESS_FD + 1, ~0u, 0);
    fcntl(PROCESS_FD, F_SETFD, FD_CLOEXEC);
    sigfillset(&all); /* the program may send us what it likes */
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    int news = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    int32_t why = news < 0 ? errno : start(argv, &child);
    if (write(PROCESS_FD, &why, sizeof(why)) != sizeof(why) || why)
        return 127;
    let_go();
    for (;;) {
        struct pollfd fds[2] = {{.fd = PROCESS_FD, .events = POLLIN},
                                {.fd = news, .events = POLLIN}};
        struct signalfd_siginfo info;
        poll(fds, 2, -1);
        if (fds[0].revents) /* the opener is gone */
            kill(0, SIGKILL);
        while (read(news, &info, sizeof(info)) > 0)
            ;
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}
