/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard ca show` and `vethguard ca export`. */
#include <stdio.h>
#include <string.h>

#include "cli/ca/ca.h"
#include "vethguard/base/slice.h"

#define SHOWN_MAX 1024

static const struct option_spec specs[] = {
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static void put(const char *key, const char *text)
{
	char shown[SHOWN_MAX];

	if (*text)
		printf("  %-12s %s\n", key,
		        slice_escape(slice_from_string(text), shown, sizeof(shown)));
}

/* Without the fraction. */
static void put_time(const char *key, const char *text)
{
	char shown[32];

	snprintf(shown, sizeof(shown), "%.*s%s", (int)strcspn(text, "."), text, *text ? "Z" : "");
	put(key, shown);
}

static const char *origin_of(const json_t *ca)
{
	static const char *const origins[][2] = {{"own", "a root that this daemon has made"},
	        {"installed", "an intermediate of this node, under the operator's root"},
	        {"configured", "the configuration's (ca: key)"}};

	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
		if (strcmp(control_text(ca, "origin"), origins[i][0]) == 0)
			return origins[i][1];
	return control_text(ca, "origin");
}

static void print_one(const json_t *ca, bool first)
{
	const json_t *root = json_object_get(ca, "root");
	bool current = json_is_true(json_object_get(ca, "current"));
	bool same = strcmp(control_text(ca, "fingerprint"), control_text(root, "fingerprint")) == 0;
	char count[32];

	printf("%s%s\n", first ? "" : "\n",
	        current ? "current: new sandboxes get it"
	                : (*control_text(ca, "retires") ? "replaced: trusted until it retires"
	                                                : "not used for new sandboxes"));
	put("subject", control_text(ca, "subject"));
	put("what", origin_of(ca));
	put("fingerprint", control_text(ca, "fingerprint"));
	put_time("from", control_text(ca, "from"));
	put_time("until", control_text(ca, "until"));
	put_time("retires", control_text(ca, "retires"));
	if (!same) {
		put("root", control_text(root, "subject"));
		put("", control_text(root, "fingerprint"));
		put_time("root until", control_text(root, "until"));
	}
	put("signs", control_text(ca, "signs"));
	snprintf(count, sizeof(count), "%" JSON_INTEGER_FORMAT,
	        json_integer_value(json_object_get(ca, "sandboxes")));
	put("sandboxes", count);
}

void ca_print(const json_t *answer)
{
	const json_t *cas = json_object_get(answer, "cas");

	for (size_t i = 0; i < json_array_size(cas); i++)
		print_one(json_array_get(cas, i), i == 0);
	if (*control_text(answer, "request_pem"))
		puts("\nA key waits for its certificate: 'vethguard ca install' takes it.");
	if (!json_is_true(json_object_get(answer, "usable")))
		puts("\nNew sandboxes are refused.");
	control_print_lines(stdout, "\nnote: ", json_object_get(answer, "notes"));
}

static int look(const struct control_usage *u, char **argv, void (*print)(const json_t *answer))
{
	struct control_line line;
	int rc = ca_line_read(u, argv, 0, &line, NULL, NULL);

	return rc >= 0 ? rc : control_call_and_print(&line, "GET", "/ca", NULL, print);
}

static void print_trusted(const json_t *answer)
{
	fputs(control_text(answer, "trusted_pem"), stdout);
}

int ca_show_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard ca show", "[OPTIONS]",
	        "Shows the CAs that sign for sandboxes: the current one first, then those that it\n"
	        "has replaced and that are still trusted.\n",
	        "  vethguard ca show\n"
	        "  vethguard ca show --json | jq -r '.cas[0].until'\n",
	        specs};

	(void)argc;
	return look(&u, argv + 1, ca_print);
}

int ca_export_command(int argc, char **argv)
{
	static const struct control_usage u = {"vethguard ca export", "[OPTIONS]",
	        "Prints the certificates that sandboxes are to trust (PEM): the current root and\n"
	        "those that are still trusted.\n",
	        "  vethguard ca export > image/vethguard.pem\n", specs};

	(void)argc;
	return look(&u, argv + 1, print_trusted);
}
