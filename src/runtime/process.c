/* SPDX-License-Identifier: Apache-2.0 */
/* The real runtime gets this process's descriptors, terminal and environment, as if the engine had
 * called it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/process.h"
#include "runtime/process.h"

static volatile sig_atomic_t child_pid;

static void pass_on(int number)
{
	if (child_pid > 0)
		kill((pid_t)child_pid, number);
}

static void catch_signals(void)
{
	static const int numbers[] = {
	        SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
	struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

int process_become(const struct settings *s, const struct line *line, struct fault *fault)
{
	char *words[LINE_WORDS_MAX + 1];

	memcpy(words, line->words, sizeof(words));
	words[0] = (char *)(uintptr_t)s->runtime;
	execv(s->runtime, words);
	fault_set(fault, "the real runtime %s: %s", s->runtime, strerror(errno));
	return PROCESS_EXIT;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Makes the real runtime die with this process. Somebody who kills this process means the runtime:
 * one that lived on would make a container that the engine has given up, and keep the engine's
 * pipes open. */
static void die_with(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
}

/* out: the child's standard output, or -1. quiet: what it says goes nowhere. */
static pid_t start(const struct settings *s, char *const words[], int out, bool quiet)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	process_reset_signals();
	die_with(parent);
	if (quiet) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDIN_FILENO);
		dup2(out >= 0 ? out : null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	execv(s->runtime, words);
	_exit(127);
}

int process_run(const struct settings *s, char *const words[])
{
	char *copy[LINE_WORDS_MAX + 1];
	pid_t pid;
	size_t n;

	for (n = 0; words[n]; n++)
		copy[n] = words[n];
	copy[n] = NULL;
	copy[0] = (char *)(uintptr_t)s->runtime;
	pid = start(s, copy, -1, false);
	if (pid < 0)
		return -errno;
	child_pid = pid;
	catch_signals();
	int rc = wait_for(pid);
	child_pid = 0;
	return rc;
}

/* The global options, a command, at most one option, the container. */
static void make_words(
        const struct line *line, const char *command, const char *option, char *words[])
{
	size_t n = 0;

	for (; n < line->globals; n++)
		words[n] = line->words[n];
	words[n++] = (char *)(uintptr_t)command;
	if (option)
		words[n++] = (char *)(uintptr_t)option;
	words[n++] = (char *)(uintptr_t)line->id;
	words[n] = NULL;
}

static bool read_all(int fd, struct buf *out)
{
	uint8_t *room;
	ssize_t n = -1;

	while ((room = buf_reserve(out, 4096)) &&
	        ((n = read(fd, room, 4096)) > 0 || (n < 0 && errno == EINTR)))
		buf_commit(out, n > 0 ? (size_t)n : 0);
	return room && n == 0;
}

json_t *process_state(const struct settings *s, const struct line *line)
{
	char *words[LINE_WORDS_MAX + 4];
	json_t *state = NULL;
	struct buf out;
	int fds[2];
	pid_t pid;

	make_words(line, "state", NULL, words);
	words[0] = (char *)(uintptr_t)s->runtime;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return NULL;
	pid = start(s, words, fds[1], true);
	close(fds[1]);
	buf_init(&out, PROCESS_STATE_MAX);
	if (pid > 0 && read_all(fds[0], &out))
		state = json_loadb(
		        (char *)buf_slice(&out).p, out.len, JSON_REJECT_DUPLICATES, NULL);
	close(fds[0]);
	if (pid > 0 && wait_for(pid) != 0) {
		json_decref(state);
		state = NULL;
	}
	buf_fini(&out);
	return state;
}

void process_delete(const struct settings *s, const struct line *line)
{
	char *words[LINE_WORDS_MAX + 4];
	pid_t pid;

	make_words(line, "delete", "--force", words);
	words[0] = (char *)(uintptr_t)s->runtime;
	pid = start(s, words, -1, true);
	if (pid > 0)
		wait_for(pid);
}

static pid_t read_pid(const char *path)
{
	FILE *file = fopen(path, "re");
	int pid = 0;

	if (file && fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid > 0 ? pid : 0;
}

pid_t process_init(const struct settings *s, const struct line *line)
{
	pid_t pid = line->pid_file ? read_pid(line->pid_file) : 0;
	json_t *state;

	if (pid)
		return pid;
	state = process_state(s, line);
	pid = (pid_t)json_integer_value(json_object_get(state, "pid"));
	json_decref(state);
	return pid > 0 ? pid : 0;
}
