/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard bundle list`: the daemon's bundles. */
#include <stdio.h>
#include <string.h>

#include "cli/bundle/bundle.h"

#define SHOWN_MAX 1100

static const struct option_spec specs[] = {
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const struct control_usage usage = {"vethguard bundle list", "[OPTIONS]",
        "Lists the bundles of the daemon's configuration: which serial of each is in force,\n"
        "and what is wrong with its source, if anything.\n",
        "  vethguard bundle list\n"
        "  vethguard bundle list --json | jq '.bundles[] | select(.fault)'\n" CONTROL_EXIT_STATUS,
        specs};

static void put(const char *key, const char *text)
{
	char shown[SHOWN_MAX];

	printf("  %-10s %s\n", key, slice_escape(slice_from_string(text), shown, sizeof(shown)));
}

/* Prints a time without its fraction of a second, or "never" if there is none. */
static void put_time(const char *key, const char *text)
{
	printf("  %-10s %.*s%s\n", key, *text ? (int)strcspn(text, ".") : 5, *text ? text : "never",
	        *text ? "Z" : "");
}

static void put_names(const char *key, const json_t *names)
{
	for (size_t i = 0; i < json_array_size(names); i++)
		put(key, json_string_value(json_array_get(names, i)));
}

static void print_one(const json_t *bundle)
{
	const json_t *active = json_object_get(bundle, "in_force");
	const json_t *fault = json_object_get(bundle, "fault");
	char shown[SHOWN_MAX];

	printf("%s: ", slice_escape(slice_from_string(control_text(bundle, "name")), shown,
	                       sizeof(shown)));
	if (json_is_object(active))
		printf("serial %" JSON_INTEGER_FORMAT " is in force%s\n",
		        json_integer_value(json_object_get(active, "serial")),
		        json_is_true(json_object_get(active, "expired"))
		                ? ", and has expired: nothing begins with it"
		                : "");
	else
		puts("none is in force");
	put("source", control_text(bundle, "source"));
	put_time("looked", control_text(bundle, "looked"));
	if (json_is_object(active)) {
		put_time("since", control_text(active, "since"));
		put_time("expires", control_text(active, "expires"));
		put_names("policy", json_object_get(active, "policies"));
		put_names("key set", json_object_get(active, "key_sets"));
		printf("  %-10s %" JSON_INTEGER_FORMAT " sessions, %" JSON_INTEGER_FORMAT
		       " tokens\n",
		        "revoked", json_integer_value(json_object_get(active, "revoked_sessions")),
		        json_integer_value(json_object_get(active, "revoked_tokens")));
	}
	if (json_is_object(fault))
		printf("  %-10s %s: %s\n", "FAULT", control_text(fault, "kind"),
		        slice_escape(slice_from_string(control_text(fault, "text")), shown,
		                sizeof(shown)));
}

static void print(const json_t *answer)
{
	const json_t *bundles = json_object_get(answer, "bundles");

	for (size_t i = 0; i < json_array_size(bundles); i++)
		print_one(json_array_get(bundles, i));
}

int bundle_list_command(int argc, char **argv)
{
	struct control_line line;
	int rc = control_usage_read(&usage, argv + 1, &line, NULL, NULL);

	(void)argc;
	if (rc >= 0)
		return rc;
	return line.name_count ? control_usage_wrong(&usage,
	                                 "this command takes only options: no other argument")
	                       : control_call_and_print(&line, "GET", "/bundles", NULL, print);
}
