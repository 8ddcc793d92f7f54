/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: one table of options per command, for parsing and for --help. Accepts "--name value", "--name=value" and
 * "-v"; "--" or the first other word ends the options. The message about an unknown option suggests the likely one.
 */
#ifndef VETHGUARD_BASE_OPTIONS_H
#define VETHGUARD_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

struct option_spec {
	const char *name;     /* without dashes; NULL ends the table */
	char letter;          /* short form or 0 */
	const char *argument; /* the value's name in --help; NULL: the option takes no value */
	const char *help;     /* lines after the first are separated by \n */
};

#define OPTIONS_TABLE_MAX 32
#define OPTIONS_END (-1)
#define OPTIONS_WRONG (-2)

struct options {
	const struct option_spec *specs;
	const char *command; /* for messages: "vethguard run"; its first word is the program */
	char **argv;         /* the rest; at OPTIONS_END it begins with the first word that is not an option */
	char *value;         /* of the option just returned */
	const char *letters; /* rest of a group of short options */
	bool ended;          /* "--" was found */
};

/* argv: the words after the command's name; ends with NULL. */
void options_init(struct options *o, const char *command, const struct option_spec *specs, char **argv);
/* The index of the next option in the table, OPTIONS_END, or OPTIONS_WRONG after a message on stderr. */
int options_next(struct options *o);
/* Prints the table for --help. */
void options_print(const struct option_spec *specs, FILE *out);

#endif
