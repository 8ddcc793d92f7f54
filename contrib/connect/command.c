/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the command, and runs helper programs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connect.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/log.h"
#include "vethguard/base/process.h"

#define NOT_FOUND 127

extern char **environ;

static void set_environment(const struct connect *c, struct environment *env)
{
	const struct trust_places places = {.bundle = c->arguments.bundle, .ca = c->arguments.ca};
	char url[PROXY_URL_MAX];

	environment_init(env);
	environment_copy(env, environ);
	if (c->arguments.ca)
		trust_env_set(env, &places);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", c->arguments.port);
	if (c->arguments.redirect)
		trust_env_unset_proxy(env);
	else
		trust_env_set_proxy(env, url);
}

int command_start(const struct connect *c)
{
	struct environment env;
	pid_t pid = -1;

	set_environment(c, &env);
	if (!env.failed)
		pid = fork();
	if (pid == 0) {
		process_reset_signals();
		environ = env.vars;
		execvp(c->arguments.command[0], c->arguments.command);
		log_error("%s cannot be started: %s", c->arguments.command[0], strerror(errno));
		_exit(errno == ENOENT ? NOT_FOUND : NOT_FOUND - 1);
	}
	if (pid < 0)
		log_error("%s cannot be started: %s", c->arguments.command[0],
		        strerror(env.failed ? ENOMEM : errno));
	environment_fini(&env);
	return pid;
}

static _Noreturn void become(const char *const argv[], int input)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	process_reset_signals();
	dup2(input >= 0 ? input : null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (log_level() < LOG_LEVEL_DEBUG)
		dup2(null, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(NOT_FOUND);
}

int command_run(const char *const argv[], const char *input)
{
	int pair[2] = {-1, -1}, status = -1;
	pid_t pid;

	if (input && pipe2(pair, O_CLOEXEC) < 0)
		return NOT_FOUND;
	pid = fork();
	if (pid == 0)
		become(argv, pair[0]);
	if (input) {
		close(pair[0]);
		if (pid > 0 && write(pair[1], input, strlen(input)) < 0)
			log_debug("%s takes no input: %s", argv[0], strerror(errno));
		close(pair[1]);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : NOT_FOUND;
}
