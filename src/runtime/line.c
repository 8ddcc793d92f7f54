/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three parsers read the same words after this one: urfave/cli (runc), argp (crun) and Go's flag
 * (runsc). Only what they agree on is read here: "-x" and "--x" are the same name; the value is in
 * the same word ("--x=v") or, if x takes one, in the next ("--x v"); of two values the last counts.
 * A line that they could read differently is refused, because what was not understood must not
 * decide what is guarded. An option that is not known here is such a case: the next word could be
 * its value or the command.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/slice.h"
#include "runtime/line.h"

#define OWN_CONFIG "vethguard-config"

/* Options that take a value, all three runtimes together. */
static const char *const global_values[] = {"root", "log", "log-format", "criu", "rootless",
        "cgroup-manager", "debug-command", "debug-log", "debug-log-fd", "debug-log-format",
        "log-fd", "panic-log", "panic-log-fd", "panic-signal", "pcap-log", "platform",
        "platform_device_path", "pod-init-config", "network", "file-access", "file-access-mounts",
        "host-fifo", "host-uds", "num-network-channels", "overlay2", "profile-block", "profile-cpu",
        "profile-heap", "profile-mutex", "qdisc", "ref-leak-mode", "strace-log-size",
        "strace-syscalls", "trace", "traceback", "vfs2", "watchdog-action", "dcache", "fdlimit",
        "gvisor-gro", "coverage-fd", "coverage-report", "controller",
        "systrap-disable-syscall-patching", "nvproxy-driver-version", OWN_CONFIG, NULL};
static const char *const create_values[] = {"bundle", "b", "console-socket", "pid-file",
        "preserve-fds", "user-log", "config", "f", "image-path", "work-path", "manage-cgroups-mode",
        "empty-ns", "lsm-profile", "lsm-mount-context", NULL};
static const char *const create_flags[] = {"no-pivot", "no-new-keyring", "no-subreaper", "keep",
        "detach", "d", "tcp-established", "ext-unix-sk", "shell-job", "file-locks", "auto-dedup",
        "lazy-pages", NULL};
static const char *const exec_values[] = {"process", "p", "console-socket", "cwd", "env", "e",
        "user", "u", "additional-gids", "g", "pid-file", "internal-pid-file", "process-label",
        "apparmor", "cap", "c", "preserve-fds", "cgroup", NULL};
/* Commands that change nothing about who guards what. */
static const char *const passed[] = {"state", "list", "ps", "events", "pause", "resume", "kill",
        "update", "checkpoint", "spec", "features", "help", "flags", "wait", "debug", "usage",
        "version", "read-control", "write-control", "symbolize", "trace", "platforms", "syscalls",
        "mitigate", "install", "uninstall", "nvproxy", "metric-server", "export-metrics",
        "metric-metadata", "boot", "gofer", "umount", "port-forward", "mounts", NULL};
static const struct {
	const char *name;
	enum verb verb;
} acted[] = {{"create", VERB_CREATE}, {"run", VERB_RUN}, {"start", VERB_START},
        {"delete", VERB_DELETE}, {"exec", VERB_EXEC}, {"restore", VERB_RESTORE},
        {"hook", VERB_HOOK}};

struct option {
	struct slice name;
	const char *value; /* behind '='; NULL: none */
};

static bool is_among(struct slice name, const char *const names[])
{
	for (size_t i = 0; names[i]; i++)
		if (slice_equals(name, slice_from_string(names[i])))
			return true;
	return false;
}

static bool is(const struct option *option, const char *name)
{
	return slice_equals(option->name, slice_from_string(name));
}

/* True if the word is an option. "-" alone is none. */
static bool split(const char *word, struct option *option)
{
	const char *name = word, *equals;

	if (word[0] != '-' || !word[1])
		return false;
	name += word[1] == '-' ? 2 : 1;
	equals = strchr(name, '=');
	option->name = slice_of(name, equals ? (size_t)(equals - name) : strlen(name));
	option->value = equals ? equals + 1 : NULL;
	return true;
}

static void take_global(struct line *line, const struct option *option)
{
	if (is(option, "root"))
		line->root = option->value;
	else if (is(option, "log"))
		line->log = option->value;
	else if (is(option, "log-format"))
		line->log_format = option->value;
	else if (is(option, "network"))
		line->network = option->value;
	else if (is(option, "allow-flag-override"))
		line->flag_override = !option->value || strcmp(option->value, "false") != 0;
}

/* Reads the words before the command. Returns the index of the command; 0 with a fault. */
static int read_globals(struct line *line, int argc, char **argv, struct fault *fault)
{
	struct option option;
	int at = 1;

	for (; at < argc && split(argv[at], &option); at++) {
		bool own = is(&option, OWN_CONFIG);

		if (option.name.n == 0)
			break; /* "--" */
		if (!own)
			line->words[line->count++] = argv[at];
		if (!option.value && is_among(option.name, global_values)) {
			if (++at >= argc) {
				fault_set(fault, "the option %s has no value", argv[at - 1]);
				return 0;
			}
			option.value = argv[at];
			if (!own)
				line->words[line->count++] = argv[at];
		}
		if (own)
			line->config = option.value;
		else
			take_global(line, &option);
	}
	line->globals = line->count;
	return at;
}

static bool find_verb(struct line *line, const char *word, struct fault *fault)
{
	char shown[64];

	for (size_t i = 0; i < sizeof(acted) / sizeof(acted[0]); i++)
		if (strcmp(word, acted[i].name) == 0) {
			line->verb = acted[i].verb;
			return true;
		}
	line->verb = VERB_PASS;
	return is_among(slice_from_string(word), passed) ||
	       fault_set(fault,
	               "\"%s\" is not a command of an OCI runtime that vethguard-runtime knows; if "
	               "it is the value of an option, write --OPTION=VALUE",
	               slice_escape(slice_from_string(word), shown, sizeof(shown)));
}

static void take_create(struct line *line, const struct option *option)
{
	if (is(option, "bundle") || is(option, "b"))
		line->bundle = option->value;
	else if (is(option, "pid-file"))
		line->pid_file = option->value;
	else if (is(option, "config") || is(option, "f"))
		line->other_config = option->value;
	else if (is(option, "detach") || is(option, "d"))
		line->detach = !option->value || strcmp(option->value, "false") != 0;
}

static bool refuse_option(const char *word, struct fault *fault)
{
	char shown[64];

	return fault_set(fault, "the option %s is not known to vethguard-runtime",
	        slice_escape(slice_from_string(word), shown, sizeof(shown)));
}

static bool read_create(struct line *line, struct fault *fault)
{
	struct option option;
	bool ended = false;

	for (size_t i = line->globals + 1; i < line->count; i++) {
		char *word = line->words[i];

		if (ended || !split(word, &option)) {
			if (line->id)
				return fault_set(fault, "one container at a time");
			line->id = word;
		} else if (option.name.n == 0) {
			ended = true;
		} else if (is_among(option.name, create_values)) {
			if (!option.value && ++i < line->count)
				option.value = line->words[i];
			if (!option.value)
				return fault_set(fault, "the option %s has no value", word);
			take_create(line, &option);
		} else if (is_among(option.name, create_flags)) {
			take_create(line, &option);
		} else {
			return refuse_option(word, fault);
		}
	}
	return true;
}

/* start, delete and exec: the first word that is no option is the container. start has no option of
 * its own, and would start another container than was looked at if the next word were a value. */
static bool read_other(struct line *line, struct fault *fault)
{
	struct option option;
	bool ended = false;

	for (size_t i = line->globals + 1; i < line->count && !line->id; i++) {
		if (ended || !split(line->words[i], &option)) {
			line->id = line->words[i];
		} else if (option.name.n == 0) {
			ended = true;
		} else if (line->verb == VERB_START) {
			return refuse_option(line->words[i], fault);
		} else if (line->verb == VERB_EXEC && is_among(option.name, exec_values)) {
			bool process = is(&option, "process") || is(&option, "p");

			if (!option.value)
				i++;
			if (process && i < line->count)
				line->process_at = i;
		} else if (is(&option, "force") || is(&option, "f")) {
			line->force = !option.value || strcmp(option.value, "false") != 0;
		} else if (is(&option, "regex") || is(&option, "r")) {
			line->by_pattern = true;
		}
	}
	return true;
}

static bool check_id(const struct line *line, struct fault *fault)
{
	if (!line->id)
		return fault_set(fault, "which container? The command line has no id");
	return (strlen(line->id) <= LINE_ID_MAX && *line->id && !strchr(line->id, '/')) ||
	       fault_set(fault, "a container's id has up to %d bytes and no slash", LINE_ID_MAX);
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool line_read(struct line *line, int argc, char **argv, struct fault *fault)
{
	int at;

	memset(line, 0, sizeof(*line));
	if (argc > LINE_WORDS_MAX)
		return fault_set(fault, "more than %d words", LINE_WORDS_MAX);
	line->words[line->count++] = argv[0];
	at = read_globals(line, argc, argv, fault);
	if (at == 0)
		return false;
	for (int i = at; i < argc; i++)
		line->words[line->count++] = argv[i];
	if (at >= argc) { /* "--version", and what else is only asked for */
		line->verb = argc < 2 || asks_for_help(argv[argc - 1]) ? VERB_HELP : VERB_PASS;
		return true;
	}
	if (!find_verb(line, argv[at], fault))
		return false;
	if (line->count > line->globals + 1 && asks_for_help(line->words[line->globals + 1]))
		line->verb = line->verb == VERB_HOOK ? VERB_HELP : VERB_PASS;
	if (line->verb == VERB_CREATE || line->verb == VERB_RUN || line->verb == VERB_RESTORE)
		return read_create(line, fault) && check_id(line, fault);
	if (line->verb == VERB_START || line->verb == VERB_DELETE || line->verb == VERB_EXEC)
		return read_other(line, fault) && check_id(line, fault);
	return true;
}
