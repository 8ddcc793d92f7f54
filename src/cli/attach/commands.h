/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands that talk to the daemon. Exit status of each: 0; 1 the daemon refused (for
 * one of several names is enough); 2 usage; 3 the daemon cannot be reached. */
#ifndef VETHGUARD_SRC_CLI_ATTACH_COMMANDS_H
#define VETHGUARD_SRC_CLI_ATTACH_COMMANDS_H

#include <stdint.h>

#include "cli/attach/control_client.h"
#include "vethguard/base/options.h"

#define CONTROL_PATH_MAX 256

int cli_attach(int argc, char **argv);
int cli_detach(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_env(int argc, char **argv);
int cli_reload(int argc, char **argv);
int cli_pause(int argc, char **argv);
int cli_resume(int argc, char **argv);
int cli_stats(int argc, char **argv);

/* The options and words that all of these commands take. */
struct control_line {
	const char *socket;
	bool json, help;
	char **names; /* words that are not options, in order; points into argv */
	size_t name_count;
};

#define CONTROL_SPEC_SOCKET                                                                   \
	{                                                                                     \
		"socket", 0, "PATH", "the daemon's socket; default:\n" CONTROL_SOCKET_DEFAULT \
	}
#define CONTROL_SPEC_JSON                                                \
	{                                                                \
		"json", 'j', NULL, "print the daemon's answer unchanged" \
	}
#define CONTROL_SPEC_HELP                      \
	{                                      \
		"help", 'h', NULL, "this text" \
	}

/* Reads argv (the words behind the command's name); options may stand before and after names. take:
 * gets the command's own options by name; returns false after a message. Returns false for wrong
 * usage, after a message. */
bool control_line_read(struct control_line *line, const char *command,
        const struct option_spec *specs, char **argv,
        bool (*take)(void *context, const char *option, const char *value), void *context);

/* The texts and the options of such a command. */
struct control_usage {
	const char *command, *words, *text, *examples;
	const struct option_spec *specs;
};

/* The end of control_usage.examples, for a command that says no more about its exit status. */
#define CONTROL_EXIT_STATUS                                                                    \
	"\nExit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n" \
	"reached.\n"

/* Reads the command line by control_line_read(), and prints the texts if --help asks for them.
 * Returns -1 to go on, or the exit status. */
int control_usage_read(const struct control_usage *usage, char **argv, struct control_line *line,
        bool (*take)(void *context, const char *option, const char *value), void *context);
/* Prints what is wrong with the command line. Returns the exit status. */
int control_usage_wrong(const struct control_usage *usage, const char *what);

/* attach.c: writes the policy's absolute path into PATH_MAX bytes, or the name of a policy in a
 * bundle ("bundle:NAME/FILE") as it is. Returns false with errno. */
bool attach_policy_path(const char *policy, char *out);
/* Writes the path of folder ("/sandboxes/"), name and tail. Returns false after a message, which
 * says what it is ("sandbox"), if the name is not allowed. */
bool control_path_of(char out[CONTROL_PATH_MAX], const char *folder, const char *what,
        const char *name, const char *tail);
/* Writes "/sandboxes/NAME" followed by tail. Returns false after a message if NAME cannot be a
 * name. */
bool control_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail);

/* attach/show.c: makes the call and prints the answer, as JSON if the line asks for it, otherwise
 * with print(). Returns the exit status. */
int control_call_and_print(const struct control_line *line, const char *method, const char *path,
        const json_t *body, void (*print)(const json_t *answer));

/* attach/text.c: prints answers for people, escaped to printable text. */
void control_print_json(const json_t *json);
void control_print_list(const json_t *sandboxes);
void control_print_attached(const json_t *sandbox); /* attach.c */
void control_print_sandbox(const json_t *sandbox);
void control_print_stats(const json_t *stats);
/* Prints each string of an array on a line of its own, after prefix. */
void control_print_lines(FILE *out, const char *prefix, const json_t *lines);

/* attach/container.c: what an engine reports about a container. */
struct control_container {
	char engine[32], id[256], name[256];
	int pid;
	uint64_t start_time; /* base/process.h; 0: unreadable */
};
/* Finds a container. engine: "docker", "podman" or NULL: the one that knows it. Returns 0, or an
 * exit status after a message. */
int control_container_find(
        const char *engine, const char *container, struct control_container *out);
/* Reads the complete output of an engine's inspect. Returns false with a sentence in fault. */
bool control_container_read(
        const json_t *inspected, struct control_container *out, char *fault, size_t fault_size);

#endif
