/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: sources. The program runs as the invoking user, in its own session and process group, with
 * a pipe as its output, no input and no other descriptor than stderr, which it may use to tell
 * people what it needs.
 *
 * The keeper gets the pipe only after the program has exited with status 0. Until then the value
 * waits in the pipe, whose size bounds it; so neither a partial value nor the output of a failed
 * program is ever taken for a credential, and the supervisor reads no byte of it. At its timeout,
 * and at its end, the whole group is killed: nothing that it left running keeps the pipe open. A
 * program that cannot be killed at once, because it waits for a file system, is left behind
 * (os/helper_child.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/process.h"
#include "vethguard/base/secret.h"
#include "supervisor/os/helper_child.h"
#include "supervisor/config/sources.h"

#define PIPE_BYTES (2 * SECRET_MAX)
/* Interval at which the fill of the pipe is checked: a program that writes too much would block for
 * ever. */
#define LOOK_MS 200
#define DIE_MS 1000 /* for a killed program */
#define TIMEOUT_MS_MAX 600000
#define PATH_OF_PROGRAMS "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define FIRST_OTHER_FD 3

struct source_run {
	struct sources *sources;
	uint64_t id;
	uint32_t index;
	pid_t pid;
	int pidfd, output;
	uint32_t timeout_ms;
	int64_t deadline_ms;
	bool late, too_much;
	struct loop_io exit;
	struct loop_timer timer;
	char name[POLICY_NAME_MAX + 1]; /* of the program, for messages */
};

/* Returns argv of the credential as C strings in one block of memory. A string that holds a NUL
 * ends there. Returns NULL if there is no memory. */
static char **argv_of(const struct policy_credential *credential)
{
	size_t bytes = (credential->argc + 1) * sizeof(char *);

	for (size_t i = 0; i < credential->argc; i++)
		bytes += credential->argv[i].n + 1;
	char **argv = calloc(1, bytes);
	if (!argv)
		return NULL;
	char *at = (char *)(argv + credential->argc + 1);
	for (size_t i = 0; i < credential->argc; i++) {
		argv[i] = at;
		memcpy(at, credential->argv[i].p, credential->argv[i].n);
		at += credential->argv[i].n + 1;
	}
	return argv;
}

static void set_environment(const struct identity *id)
{
	const char *lang = getenv("LANG");
	char kept[64];
	struct passwd *user = getpwuid(id->fixed ? getuid() : id->uid);

	snprintf(kept, sizeof(kept), "%s", lang ? lang : "C.UTF-8");
	clearenv();
	setenv("PATH", PATH_OF_PROGRAMS, 1);
	setenv("LANG", kept, 1);
	if (user) {
		setenv("HOME", user->pw_dir, 1);
		setenv("USER", user->pw_name, 1);
		setenv("LOGNAME", user->pw_name, 1);
		setenv("SHELL", user->pw_shell, 1);
	}
}

/* In the child. Failures give exit status 126 or 127, as in a shell. */
static void child(struct sources *sources, char **argv, int output, pid_t parent)
{
	struct rlimit no_core = {0, 0};
	int input = sources->input >= 0 ? sources->input : open("/dev/null", O_RDONLY);

	process_reset_signals();
	setsid();
	set_environment(&sources->identity);
	if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
		_exit(126);
	close_range(FIRST_OTHER_FD, ~0u, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	if (identity_become(&sources->identity) != 0)
		_exit(126);
	/* After the change of identity, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	if (chdir(sources->directory[0] ? sources->directory : "/") < 0 && chdir("/") < 0)
		_exit(126);
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static void explain(const struct source_run *run, const siginfo_t *end, char out[SOURCE_ERROR_MAX])
{
	if (run->too_much)
		snprintf(out, SOURCE_ERROR_MAX,
		        "%s wrote more than the %d bytes that a credential may have and was killed",
		        run->name, SECRET_MAX);
	else if (run->late)
		snprintf(out, SOURCE_ERROR_MAX, "%s had not ended after %u ms and was killed",
		        run->name, run->timeout_ms);
	else if (end->si_code != CLD_EXITED)
		snprintf(out, SOURCE_ERROR_MAX, "%s was killed by signal %d", run->name,
		        end->si_status);
	else if (end->si_status == 127)
		snprintf(out, SOURCE_ERROR_MAX, "%s was not found", run->name);
	else if (end->si_status == 126)
		snprintf(out, SOURCE_ERROR_MAX, "%s could not be executed", run->name);
	else
		snprintf(out, SOURCE_ERROR_MAX, "%s ended with status %d", run->name,
		        end->si_status);
}

/* The process is alive or a zombie here, so its pid and process group cannot be anybody else's. */
static void kill_group(const struct source_run *run)
{
	kill(-run->pid, SIGKILL);
	pidfd_send_signal(run->pidfd, SIGKILL, NULL, 0);
}

static void on_exit_ready(struct loop_io *io, unsigned events)
{
	struct source_run *run = container_of(io, struct source_run, exit);
	siginfo_t end = {0};
	char text[SOURCE_ERROR_MAX];
	int output = -1;

	(void)events;
	if (waitid(P_PIDFD, (id_t)run->pidfd, &end, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	        end.si_pid == 0)
		return;
	kill_group(run);
	waitid(P_PIDFD, (id_t)run->pidfd, &end, WEXITED);
	run->pid = 0;
	if (!run->late && !run->too_much && end.si_code == CLD_EXITED && end.si_status == 0) {
		output = run->output;
		run->output = -1;
	} else {
		explain(run, &end, text);
	}
	sources_run_ended(run->sources, run->index, run->id, output, output < 0 ? text : NULL);
}

/* The helper_child module reaps it when it is dead. */
static void leave(struct source_run *run)
{
	helper_child_leave(run->sources->loop, run->pid, run->pidfd, run->sources->identity.uid);
	run->pid = 0;
	run->pidfd = -1;
}

static void give_up(struct source_run *run)
{
	char text[SOURCE_ERROR_MAX];

	loop_io_close(&run->exit);
	leave(run);
	explain(run, &(siginfo_t){0}, text);
	sources_run_ended(run->sources, run->index, run->id, -1, text);
}

static void look_again(struct source_run *run, int64_t now_ms)
{
	int64_t left = run->deadline_ms - now_ms;

	loop_timer_set(&run->timer, left < LOOK_MS ? left : LOOK_MS);
}

/* The amount that waits in the pipe is no secret; no byte of it is read. */
static void on_look(struct loop_timer *timer)
{
	struct source_run *run = container_of(timer, struct source_run, timer);
	int64_t now_ms = loop_now_ms(timer->loop);
	int waiting = 0;

	if (run->late || run->too_much) {
		give_up(run);
		return;
	}
	run->late = now_ms >= run->deadline_ms;
	run->too_much = ioctl(run->output, FIONREAD, &waiting) == 0 && waiting >= SECRET_MAX;
	if (run->late || run->too_much) {
		kill_group(run);
		loop_timer_set(timer, DIE_MS);
	} else {
		look_again(run, now_ms);
	}
}

void source_run_free(struct source_run *run)
{
	loop_io_close(&run->exit);
	loop_timer_close(&run->timer);
	if (run->pid > 0) {
		kill_group(run);
		leave(run);
	}
	if (run->pidfd >= 0)
		close(run->pidfd);
	if (run->output >= 0)
		close(run->output);
	free(run);
}

static int launch(struct source_run *run, const struct policy_credential *credential)
{
	int ends[2];
	pid_t parent = getpid();
	char **argv = credential->argc ? argv_of(credential) : NULL;

	if (!argv)
		return credential->argc ? -ENOMEM : -EINVAL;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		free(argv);
		return -errno;
	}
	/* If this fails: the default size holds SECRET_MAX. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	run->output = ends[0];
	run->pid = fork();
	if (run->pid == 0)
		child(run->sources, argv, ends[1], parent);
	int rc = run->pid < 0 ? -errno : 0;
	close(ends[1]);
	free(argv);
	if (!rc) {
		run->pidfd = pidfd_open(run->pid, 0);
		if (run->pidfd < 0) {
			rc = -errno;
			kill(run->pid, SIGKILL);
			waitpid(run->pid, NULL, 0);
		}
	}
	if (rc)
		run->pid = 0;
	return rc;
}

static int watch(struct source_run *run, struct loop *loop)
{
	int rc = loop_io_open_level(loop, &run->exit, run->pidfd, LOOP_READ, on_exit_ready);

	if (!rc)
		rc = loop_timer_open(loop, &run->timer, on_look);
	if (!rc) {
		int64_t now_ms = loop_now_ms(loop);

		run->deadline_ms = now_ms + run->timeout_ms;
		look_again(run, now_ms);
	}
	return rc;
}

struct source_run *source_run_start(struct sources *sources,
        const struct policy_credential *credential, uint64_t id, uint32_t index,
        char error[SOURCE_ERROR_MAX])
{
	struct source_run *run = NULL;
	int rc = -ENOMEM;

	if (!helper_child_has_room(sources->identity.uid)) {
		snprintf(error, SOURCE_ERROR_MAX, "%s", HELPER_CHILDREN_FULL);
		return NULL;
	}
	run = calloc(1, sizeof(*run));
	if (run) {
		*run = (struct source_run){
		        .sources = sources, .id = id, .index = index, .pidfd = -1, .output = -1};
		run->timeout_ms = credential->timeout_ms && credential->timeout_ms < TIMEOUT_MS_MAX
		                          ? credential->timeout_ms
		                          : TIMEOUT_MS_MAX;
		if (credential->argc)
			slice_escape(credential->argv[0], run->name, sizeof(run->name));
		rc = launch(run, credential);
		if (!rc)
			rc = watch(run, sources->loop);
	}
	if (!rc)
		return run;
	snprintf(error, SOURCE_ERROR_MAX, "the program could not be started: %s", strerror(-rc));
	if (run)
		source_run_free(run);
	return NULL;
}
