/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard doctor: says what this machine can do and how to mend what is missing. The checks are
 * in doctor/checks.c; this file prints them. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/doctor/doctor.h"
#include "cli/screen.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/log.h"
#include "vethguard/base/options.h"
#include "vethguard/base/version.h"
#include "vethguard/wire/json.h"

#define DOCTOR_JSON_MAX (256u << 10)
#define STATE_WIDTH 6
#define SUBJECT_WIDTH 11

enum { CONFIG, ROLES, POLICY, SOCKET, JSON, HELP };

static const struct option_spec specs[] = {
        [CONFIG] = {"config", 'c', "FILE", "try the egress proxy of this configuration too"},
        [ROLES] = {"roles", 0, NULL,
                "prove how each program of the daemon, or of a run, is confined"},
        [POLICY] = {"policy", 'p', "FILE", "with --roles: a run of its own under this policy"},
        [SOCKET] = {"socket", 's', "PATH", "with --roles: the daemon's control socket"},
        [JSON] = {"json", 'j', NULL, "findings as one JSON object"},
        [HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static const char *const state_words[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_BROKEN] = "broken"};

static void help(void)
{
	fputs("Usage: vethguard doctor [OPTIONS]\n\n"
	      "Checks everything that 'vethguard run' needs, tries it once, and says how to "
	      "fix\nwhat is missing. Changes nothing.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard doctor\n"
	      "  sudo vethguard doctor\n"
	      "  vethguard doctor --config site.yaml\n"
	      "  sudo vethguard doctor --roles\n"
	      "  vethguard doctor --json | jq '.findings[] | select(.state == \"broken\")'\n\n"
	      "Exit status: 0 where 'vethguard run' works here, 1 where it does not. With "
	      "--roles:\n"
	      "0 where each role is confined as it should be, 1 where one is not.\n",
	        stdout);
}

static void print_text(const struct doctor_finding *f)
{
	const int screen = screen_width();
	const struct screen_cell cells[] = {{state_words[f->state], STATE_WIDTH, NULL, NULL},
	        {f->subject, SUBJECT_WIDTH, NULL, NULL},
	        {f->text, screen - STATE_WIDTH - SUBJECT_WIDTH - 2 * SCREEN_GAP, NULL, f->remedy}};

	if (screen) {
		screen_row(stdout, cells, sizeof(cells) / sizeof(cells[0]), 0);
	} else {
		printf("%-7s %-12s %s\n", state_words[f->state], f->subject, f->text);
		if (f->remedy[0] != '\0')
			printf("%-20s %s\n", "", f->remedy);
	}
	fflush(stdout); /* checks take time, and some fork */
}

static void add_json(struct json *j, const struct doctor_finding *f)
{
	json_object(j, NULL);
	json_literal(j, "subject", f->subject);
	json_literal(j, "state", state_words[f->state]);
	json_string(j, "text", slice_from_string(f->text), 0);
	if (f->remedy[0] != '\0')
		json_string(j, "remedy", slice_from_string(f->remedy), 0);
	json_end_object(j);
}

/* Prints a finding, if there is one. Returns false if something is broken. */
static bool tell(struct json *j, const struct doctor_finding *f)
{
	if (f->text[0] == '\0')
		return true;
	if (j)
		add_json(j, f);
	else
		print_text(f);
	return f->state != DOCTOR_BROKEN;
}

/* Runs every check; config is NULL or a path. Returns true if nothing is broken. */
static bool examine(struct json *j, const char *config)
{
	struct doctor_finding egress = {0}, token = {0};
	bool works = true;

	for (const doctor_check *check = doctor_checks; *check; check++) {
		struct doctor_finding f;

		memset(&f, 0, sizeof(f));
		(*check)(&f);
		works = tell(j, &f) && works;
	}
	if (config) {
		doctor_egress(config, &egress);
		doctor_token(config, &token);
	}
	works = tell(j, &egress) && works;
	return tell(j, &token) && works;
}

static bool examine_json(const char *config)
{
	struct buf text;
	struct json j;
	bool works;

	buf_init(&text, DOCTOR_JSON_MAX);
	json_begin(&j, &text);
	json_object(&j, NULL);
	json_literal(&j, "version", VERSION_TEXT);
	json_array(&j, "findings");
	works = examine(&j, config);
	json_end_array(&j);
	json_bool(&j, "works", works);
	json_end_object(&j);
	printf("%.*s\n", (int)text.len, (const char *)buf_bytes(&text));
	buf_fini(&text);
	return works;
}

static int refuse(const char *text)
{
	fprintf(stderr, "vethguard: error: %s\nSee 'vethguard doctor --help'.\n", text);
	return CLI_USAGE;
}

static int diagnose(const char *config, bool json)
{
	bool works = json ? examine_json(config) : examine(NULL, config);

	if (!json)
		puts(works ? "\n'vethguard run' works here."
		           : "\n'vethguard run' does not work here yet.");
	return works ? 0 : 1;
}

int cli_doctor(int argc, char **argv)
{
	struct options o;
	const char *config = NULL, *policy = NULL, *daemon = NULL;
	bool json = false, roles = false;
	int option;

	(void)argc;
	options_init(&o, "vethguard doctor", specs, argv + 1);
	while ((option = options_next(&o)) >= 0) {
		if (option == HELP) {
			help();
			return 0;
		}
		if (option == CONFIG)
			config = o.value;
		else if (option == POLICY)
			policy = o.value;
		else if (option == SOCKET)
			daemon = o.value;
		else if (option == ROLES)
			roles = true;
		else
			json = true;
	}
	if (option == OPTIONS_WRONG)
		return CLI_USAGE;
	if (*o.argv)
		return refuse("doctor takes options only");
	if (policy && !roles)
		return refuse("--policy needs --roles");
	if (daemon && (!roles || policy))
		return refuse("--socket needs --roles, and cannot be used with --policy");
	if (config && roles)
		return refuse("--config cannot be used with --roles");
	return roles ? doctor_roles(policy, daemon, json) : diagnose(config, json);
}
