/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process of a container by its name: runs the engine as the invoking user and without a
 * shell, and reads its output as JSON. Docker and Podman agree on the members that are needed. The
 * process may end, and another one get its number, before its start time is read. So the engine is
 * asked once more afterwards and has to give the same answer. From then on the daemon compares the
 * start time.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/attach/commands.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/process.h"

#define INSPECT_MAX (4u << 20)
#define NOT_THERE 127

extern char **environ;

static const char *const engines[] = {"docker", "podman", NULL};

static int read_all(int fd, struct buf *out)
{
	for (;;) {
		uint8_t *room = buf_reserve(out, 65536);
		ssize_t n = room ? read(fd, room, 65536) : -1;

		if (n == 0)
			return 0;
		if (n < 0 && room && errno == EINTR)
			continue;
		if (n < 0)
			return -EIO;
		buf_commit(out, (size_t)n);
	}
}

/* Stores the engine's output in out. Returns its exit status; NOT_THERE: there is no such
 * program. */
static int inspect(const char *engine, const char *container, bool quiet, struct buf *out)
{
	/* posix_spawn(3) takes non-const words but does not change them */
	const char *words[] = {engine, "inspect", "--type", "container", "--", container, NULL};
	char *argv[sizeof(words) / sizeof(words[0])];
	posix_spawn_file_actions_t actions;
	int fds[2], status = 0, rc;
	pid_t pid;

	memcpy(argv, words, sizeof(argv));
	if (pipe2(fds, O_CLOEXEC) < 0)
		return NOT_THERE;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&pid, engine, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc == 0) {
		rc = read_all(fds[0], out);
		close(fds[0]); /* an engine that writes more than is read ends */
		waitpid(pid, &status, 0);
		return rc == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	close(fds[0]);
	return NOT_THERE;
}

static bool say(char *fault, size_t size, const char *name, const char *what)
{
	char shown[128];

	snprintf(fault, size, "container %s %s",
	        slice_escape(slice_from_string(name), shown, sizeof(shown)), what);
	return false;
}

bool control_container_read(
        const json_t *inspected, struct control_container *out, char *fault, size_t fault_size)
{
	const json_t *c = json_array_get(inspected, 0);
	const char *mode = control_text(json_object_get(c, "HostConfig"), "NetworkMode");
	const char *name = control_text(c, "Name");
	json_int_t pid = json_integer_value(json_object_get(json_object_get(c, "State"), "Pid"));
	char why[512], shown[128];

	name += *name == '/';
	if (*control_text(c, "Id") == '\0' || strlen(control_text(c, "Id")) >= sizeof(out->id) ||
	        strlen(name) >= sizeof(out->name))
		return say(fault, fault_size, name,
		        "is described by its engine in a way that vethguard does not understand");
	if (pid <= 0 || pid > INT32_MAX)
		return say(fault, fault_size, name,
		        "does not run; start it first (a container that was created but not "
		        "started has no process)");
	if (strcmp(mode, "none") != 0) {
		snprintf(why, sizeof(why),
		        "already has a network (%s), which would lead past the guard; start "
		        "it with --network none, or guard its engine's bridge with --interface",
		        slice_escape(slice_from_string(mode), shown, sizeof(shown)));
		return say(fault, fault_size, name, why);
	}
	snprintf(out->id, sizeof(out->id), "%s", control_text(c, "Id"));
	snprintf(out->name, sizeof(out->name), "%s", name);
	out->pid = (int)pid;
	return true;
}

static int understand(struct slice text, const char *engine, struct control_container *out)
{
	json_t *json = json_loadb(text.p, text.n, 0, NULL);
	char fault[1024] = "";
	bool read = json && control_container_read(json, out, fault, sizeof(fault));

	json_decref(json);
	if (!read) {
		fprintf(stderr, "vethguard: error: %s\n",
		        *fault ? fault : "what the engine's inspect printed is not JSON");
		return CLI_USAGE;
	}
	snprintf(out->engine, sizeof(out->engine), "%s", engine);
	if (process_start_time(out->pid, &out->start_time) != 0)
		out->start_time = 0; /* not ours to read; the daemon compares nothing then */
	return 0;
}

/* Checks that the process whose start time was read is the container's. */
static int confirm(const char *engine, const char *container, const struct control_container *found)
{
	struct control_container again = {0};
	char fault[1024], shown[128];
	struct buf text;
	json_t *json;
	bool same;

	buf_init(&text, INSPECT_MAX);
	same = inspect(engine, container, true, &text) == 0;
	json = same ? json_loadb((const char *)buf_bytes(&text), text.len, 0, NULL) : NULL;
	buf_fini(&text);
	same = json && control_container_read(json, &again, fault, sizeof(fault)) &&
	       again.pid == found->pid && strcmp(again.id, found->id) == 0;
	json_decref(json);
	if (same)
		return 0;
	fprintf(stderr,
	        "vethguard: error: container %s ended or was started again meanwhile: try again\n",
	        slice_escape(slice_from_string(container), shown, sizeof(shown)));
	return CLI_USAGE;
}

static int not_found(const char *engine, const char *container, bool any)
{
	char shown[128];

	slice_escape(slice_from_string(container), shown, sizeof(shown));
	if (!any)
		fprintf(stderr,
		        "vethguard: error: %s%s in PATH, and vethguard asks it for the container's "
		        "process: install it, or give the process with --pid\n",
		        engine ? engine : "neither docker nor podman", engine ? " is not" : " is");
	else if (engine)
		fprintf(stderr,
		        "vethguard: error: %s does not run, or has no container %s that you may "
		        "see: '%s ps -a' lists those it has\n",
		        engine, shown, engine);
	else
		fprintf(stderr,
		        "vethguard: error: docker and podman do not run, or have no container %s "
		        "that you may see: 'docker ps -a' and 'podman ps -a' list those they "
		        "have\n",
		        shown);
	return CLI_USAGE;
}

int control_container_find(const char *engine, const char *container, struct control_container *out)
{
	bool any = false;

	*out = (struct control_container){0};
	for (size_t i = 0; engines[i]; i++) {
		struct buf text;
		int status, rc = -1;

		if (engine && strcmp(engine, engines[i]) != 0)
			continue;
		buf_init(&text, INSPECT_MAX);
		status = inspect(engines[i], container, !engine, &text);
		any = any || status != NOT_THERE;
		if (status == 0)
			rc = understand(buf_slice(&text), engines[i], out);
		buf_fini(&text);
		if (rc == 0 && out->start_time != 0)
			rc = confirm(engines[i], container, out);
		if (rc >= 0)
			return rc;
	}
	return not_found(engine, container, any);
}
