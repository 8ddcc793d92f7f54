/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: a table */
/*
 * Runs `vethguard run` with a supervisor that this test plays itself. The test program is linked to
 * two names in a directory of its own: as "vethguard" it is the command, as "vethguardd" the
 * supervisor, which does what the first word of the policy file says:
 *
 *   ready        guards nothing, answers READY, ends with the run
 *   env NAME...  asks for these variables first and writes what it got to the file "values" beside
 *                the policy
 *   refuse       MESSAGE_FAILED instead of READY
 *   many         the same, 32 long lines
 *   garbage      bytes that are no message
 *   leave        ends without a message
 *   fail-later   READY, and MESSAGE_FAILED once the file "go" is there
 *   die-later    READY, and kills itself once the file "go" is there
 */
/* clang-format on */
#ifndef VETHGUARD_TESTS_UNIT_CLI_RUN_RUN_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_CLI_RUN_RUN_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/tls/ca.h"

#define FIXTURE_ARGS_MAX 24

struct fixture {
	char directory[PATH_MAX];
	char policy[PATH_MAX + 32];
	char program[PATH_MAX + 32];
};

/* What one run left behind. */
struct outcome {
	int status; /* exit status; -1: ended by a signal */
	int signal;
	char out[65536]; /* both outputs */
};

static uint8_t fixture_buffer[MESSAGE_BYTES_MAX];

/* --- the supervisor's part --- */

static inline void play_ready(const struct message_run_start *start)
{
	struct message_run_ready ready = {
	        .sandbox = SLICE("test"), .proxy_port = 3128, .env_count = 1};
	struct ca *ca = ca_new_root(SLICE("vethguard test root"), 30);
	struct buf pem;
	size_t n;

	(void)start;
	buf_init(&pem, 8192);
	if (ca == NULL || ca_pem_append(ca_certificate_der(ca), &pem) != 0)
		_exit(9);
	ip_parse(SLICE("10.9.8.1"), &ready.gate4);
	ip_parse(SLICE("fd00:9::1"), &ready.gate6);
	ready.root_pem = buf_slice(&pem);
	ready.env[0].name = SLICE("TEST_TOKEN");
	ready.env[0].value = SLICE("vethguard-test-0123");
	n = message_run_ready_encode(
	        fixture_buffer, sizeof(fixture_buffer), MESSAGE_RUN_READY, 1, &ready);
	if (n == 0 || ipc_send_blocking(3, fixture_buffer, n, NULL, 0) != 0)
		_exit(9);
	ca_free(ca);
	buf_fini(&pem);
}

static inline void play_ask(char *names, const char *directory)
{
	struct message_names asked = {0}, got;
	struct ipc_message m;
	char path[PATH_MAX + 16];
	FILE *out;
	size_t n;

	for (char *word = strtok(names, " \n"); word != NULL; word = strtok(NULL, " \n"))
		asked.names[asked.count++] = slice_from_string(word);
	n = message_names_encode(
	        fixture_buffer, sizeof(fixture_buffer), MESSAGE_RUN_ENV_GET, 77, &asked);
	if (n == 0 || ipc_send_blocking(3, fixture_buffer, n, NULL, 0) != 0 ||
	        ipc_receive_blocking(3, 5000, fixture_buffer, &m) != 0 || m.head.id != 77 ||
	        m.head.type != MESSAGE_RUN_ENV || message_names_decode(&m.body, &got) != 0 ||
	        got.count != m.fd_count)
		_exit(9);
	snprintf(path, sizeof(path), "%s/values", directory);
	out = fopen(path, "w");
	for (size_t i = 0; i < got.count; i++) {
		static char value[70000];
		size_t used = 0;
		ssize_t r;

		while ((r = read(m.fds[i], value + used, sizeof(value) - used)) > 0)
			used += (size_t)r;
		fprintf(out, "%.*s=%zu:%.*s\n", SLICE_ARG(got.names[i]), used,
		        (int)(used > 64 ? 64 : used), value);
	}
	fclose(out);
}

static inline void play_fail(const char *text)
{
	struct message_text m = {slice_from_string(text)};
	size_t n =
	        message_text_encode(fixture_buffer, sizeof(fixture_buffer), MESSAGE_FAILED, 0, &m);

	ipc_send_blocking(3, fixture_buffer, n, NULL, 0);
}

/* As many lines as a policy may have errors, each of the greatest length. */
static inline void play_fail_at_length(void)
{
	static char text[MESSAGE_TEXT_MAX + 1];
	size_t n = 0;

	for (int i = 1; i <= 32; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%spolicy.yaml:%d:1: error: %0*d",
		        i == 1 ? "" : "\n", i, 512, i);
	play_fail(text);
}

/* Until the other side is gone or the file "go" is there. */
static inline bool play_wait_for_go(const char *directory)
{
	char path[PATH_MAX + 16];
	struct pollfd control = {.fd = 3, .events = POLLIN};

	snprintf(path, sizeof(path), "%s/go", directory);
	while (access(path, F_OK) != 0)
		if (poll(&control, 1, 10) != 0)
			return false;
	return true;
}

static inline void play_end(void)
{
	struct message_summary summary = {.allowed = 3, .denied = 2, .unusual_count = 1};
	struct message_status status;
	struct ipc_message m;
	size_t n;

	if (ipc_receive_blocking(3, -1, fixture_buffer, &m) != 0)
		_exit(0);
	if (m.head.type != MESSAGE_RUN_END || message_status_decode(&m.body, &status) != 0)
		_exit(9);
	summary.unusual[0].what = SLICE("POST https://paste.example/");
	summary.unusual[0].count = 2;
	n = message_summary_encode(
	        fixture_buffer, sizeof(fixture_buffer), MESSAGE_RUN_SUMMARY, m.head.id, &summary);
	ipc_send_blocking(3, fixture_buffer, n, NULL, 0);
	_exit(0);
}

static inline int play_supervisor(void)
{
	char policy[PATH_MAX], directory[PATH_MAX], script[1024] = "";
	struct message_run_start start;
	struct ipc_message m;
	FILE *file;

	if (ipc_receive_blocking(3, 5000, fixture_buffer, &m) != 0 ||
	        m.head.type != MESSAGE_RUN_START ||
	        message_run_start_decode(&m.body, &start) != 0 || m.fd_count != 1)
		return 9;
	snprintf(policy, sizeof(policy), "%.*s", SLICE_ARG(start.policy_path));
	snprintf(
	        directory, sizeof(directory), "%.*s", (int)(strrchr(policy, '/') - policy), policy);
	file = fopen(policy, "r");
	if (file == NULL || fgets(script, sizeof(script), file) == NULL)
		return 9;
	fclose(file);
	if (strncmp(script, "leave", 5) == 0)
		return 0;
	if (strncmp(script, "refuse", 6) == 0)
		play_fail("policy.yaml:1:1: error: it is no policy");
	else if (strncmp(script, "many", 4) == 0)
		play_fail_at_length();
	else if (strncmp(script, "garbage", 7) == 0)
		ipc_send_blocking(3, (const uint8_t *)"garbage", 7, NULL, 0);
	else {
		if (strncmp(script, "env ", 4) == 0)
			play_ask(script + 4, directory);
		play_ready(&start);
		if (strncmp(script, "fail-later", 10) == 0 && play_wait_for_go(directory))
			play_fail("the worker died");
		if (strncmp(script, "die-later", 9) == 0 && play_wait_for_go(directory))
			kill(getpid(), SIGKILL);
	}
	play_end();
	return 0;
}

/* To be called first in main(): plays the part that argv[0] names, if any. */
static inline bool fixture_play(int argc, char **argv, int *status)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	if (strcmp(name, "vethguardd") == 0) {
		*status = play_supervisor();
		return true;
	}
	if (strcmp(name, "vethguard") == 0) {
		*status = cli_run(argc, argv);
		return true;
	}
	return false;
}

/* --- the test's part --- */

static inline void fixture_link(const char *self, const char *directory, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (link(self, path) != 0) {
		perror(path);
		abort();
	}
}

static inline void fixture_open(struct fixture *f)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n] = '\0';
	/* Beside the test: a hard link does not leave its file system. */
	snprintf(f->directory, sizeof(f->directory), "%.*s/run-XXXXXX",
	        (int)(strrchr(self, '/') - self), self);
	if (mkdtemp(f->directory) == NULL)
		abort();
	chmod(f->directory, 0755);
	fixture_link(self, f->directory, "vethguard");
	fixture_link(self, f->directory, "vethguardd");
	snprintf(f->program, sizeof(f->program), "%s/vethguard", f->directory);
	snprintf(f->policy, sizeof(f->policy), "%s/policy.yaml", f->directory);
}

static inline void fixture_unlink(const struct fixture *f, const char *name)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	unlink(path);
}

static inline void fixture_close(struct fixture *f)
{
	static const char *const names[] = {
	        "vethguard", "vethguardd", "policy.yaml", "go", "values", "copy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fixture_unlink(f, names[i]);
	rmdir(f->directory);
}

static inline void fixture_write(const struct fixture *f, const char *name, const char *text)
{
	char path[PATH_MAX + 32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

static inline void fixture_policy(struct fixture *f, const char *text)
{
	fixture_unlink(f, "go");
	fixture_unlink(f, "values");
	fixture_write(f, "policy.yaml", text);
}

/* arguments: behind "--policy FILE", ends with NULL. The pid, with *output a pipe from it. */
static inline pid_t fixture_start(struct fixture *f, const char *const arguments[], int *output)
{
	char *argv[FIXTURE_ARGS_MAX] = {
	        (char *)(uintptr_t) "vethguard", (char *)(uintptr_t) "--policy", f->policy};
	int fds[2];
	pid_t pid;

	for (size_t i = 0; arguments[i] != NULL; i++)
		argv[3 + i] = (char *)(uintptr_t)arguments[i];
	if (pipe2(fds, O_CLOEXEC) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		execv(f->program, argv);
		_exit(99);
	}
	close(fds[1]);
	*output = fds[0];
	return pid;
}

/* Reads until text was seen in what came so far, or the end; false at the end. */
static inline bool fixture_await(int output, char *seen, size_t size, const char *text)
{
	size_t n = strlen(seen);
	ssize_t got = 1;

	while (strstr(seen, text) == NULL && got > 0 && n < size - 1) {
		got = read(output, seen + n, size - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		seen[n] = '\0';
	}
	return strstr(seen, text) != NULL;
}

static inline void fixture_finish(pid_t pid, int output, struct outcome *out)
{
	int status = 0;

	fixture_await(output, out->out, sizeof(out->out), "\001 never");
	close(output);
	waitpid(pid, &status, 0);
	out->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static inline void fixture_run(
        struct fixture *f, const char *const arguments[], struct outcome *out)
{
	int output;
	pid_t pid;

	memset(out, 0, sizeof(*out));
	pid = fixture_start(f, arguments, &output);
	fixture_finish(pid, output, out);
}

static inline bool fixture_in_command_line(const char *pid, const char *word)
{
	char path[300], text[4096];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(text, (size_t)n, word, strlen(word)) != NULL;
}

/* The pid of a process with word in its command line and named exactly name (its argv[0]); 0: none.
 */
static inline pid_t fixture_find(const char *word)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (found == 0 && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		        atoi(entry->d_name) != getpid() &&
		        fixture_in_command_line(entry->d_name, word))
			found = atoi(entry->d_name);
	closedir(dir);
	return found;
}

/* True where no process any more has word in its command line (waits up to two seconds). */
static inline bool fixture_gone(const char *word)
{
	for (int i = 0; i < 200; i++) {
		if (fixture_find(word) == 0)
			return true;
		usleep(10000);
	}
	return false;
}

#endif
