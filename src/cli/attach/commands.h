/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that speak to the daemon: what they share. Exit status of each: 0; 1 the daemon
 * refused (one of several names is enough); 2 usage; 3 the daemon cannot be reached. */
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

/* What every one of them may be told. */
struct control_line {
	const char *socket;
	bool json, help;
	char **names; /* words that are no options, in their order: the words of argv */
	size_t name_count;
};

#define CONTROL_SPEC_SOCKET                                                           \
	{                                                                             \
		"socket", 0, "PATH", "the daemon's; default: " CONTROL_SOCKET_DEFAULT \
	}
#define CONTROL_SPEC_JSON                                         \
	{                                                         \
		"json", 'j', NULL, "the daemon's answer as it is" \
	}
#define CONTROL_SPEC_HELP                      \
	{                                      \
		"help", 'h', NULL, "this text" \
	}

/* Reads argv (behind the command's name), options before and behind names. take: for the command's
 * own options, by index; false after a message. False: usage, after a message. */
bool control_line_read(struct control_line *line, const char *command,
        const struct option_spec *specs, char **argv,
        bool (*take)(void *context, const char *option, const char *value), void *context);

/* "/sandboxes/NAME" and tail behind it. False, after a message: NAME cannot be a name. */
bool control_path(char out[CONTROL_PATH_MAX], const char *name, const char *tail);

/* attach/text.c: answers for people; everything printable. */
void control_print_json(const json_t *json);
void control_print_list(const json_t *sandboxes);
void control_print_sandbox(const json_t *sandbox);
void control_print_stats(const json_t *stats);
/* Each string of an array on a line of its own, behind prefix. */
void control_print_lines(FILE *out, const char *prefix, const json_t *lines);
/* A member's string, or "" (borrowed). */
const char *control_text(const json_t *object, const char *key);

/* attach/container.c: what an engine says of a container. */
struct control_container {
	char engine[32], id[256], name[256];
	int pid;
	uint64_t start_time; /* base/process.h; 0: cannot be read */
};
/* engine: "docker", "podman" or NULL: whichever knows it. 0, or an exit status after a message. */
int control_container_find(
        const char *engine, const char *container, struct control_container *out);
/* What an engine's inspect printed, whole. False: with a sentence. */
bool control_container_read(
        const json_t *inspected, struct control_container *out, char *fault, size_t fault_size);

#endif
