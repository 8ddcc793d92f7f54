/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard session revoke`: sessions by their names, or the signed tokens of one signer. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/session/session.h"

struct revoked {
	const char *signer, *id;
};

static const struct option_spec specs[] = {
        {"signer", 0, "NAME", "refuse tokens of this signer of the configuration"},
        {"id", 0, "VALUE", "those with this jti, or with this value of the signer's session claim"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static const char words[] = "Usage: vethguard session revoke NAME... [OPTIONS]\n"
                            "       vethguard session revoke --signer NAME --id VALUE [OPTIONS]\n";

static void usage(FILE *out)
{
	fputs(words, out);
	fputs("\nEnds sessions: their tokens are unknown from now on, and their connections are "
	      "cut.\n"
	      "Signed tokens are refused until none of them can be valid any more; --signer and "
	      "--id\n"
	      "do that also for tokens that nobody has shown here yet.\n\nOptions:\n",
	        out);
	options_print(specs, out);
	fputs("\nExamples:\n  vethguard session revoke agent-7\n"
	      "  vethguard session revoke --signer control --id 0c6b8f4e\n\n"
	      "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached.\n",
	        out);
}

static bool take(void *context, const char *option, const char *value)
{
	struct revoked *r = context;

	*(strcmp(option, "signer") == 0 ? &r->signer : &r->id) = value;
	return true;
}

static void print_session(const json_t *answer)
{
	printf("%s: revoked\n", control_text(answer, "name"));
}

static int by_names(const struct control_line *line)
{
	int worst = 0;

	for (size_t i = 0; i < line->name_count; i++) {
		char path[CONTROL_PATH_MAX];
		int rc = session_path(path, line->names[i], "")
		                 ? control_call_and_print(line, "DELETE", path, NULL, print_session)
		                 : CLI_USAGE;

		worst = rc > worst ? rc : worst;
	}
	return worst;
}

static int by_id(const struct control_line *line, const struct revoked *r)
{
	struct control_answer answer;
	json_t *body = json_pack("{s:s, s:s}", "signer", r->signer, "id", r->id);
	const char *session;
	char shown[128];
	int rc;

	if (!body) {
		fputs("vethguard: error: the id is not valid UTF-8\n", stderr);
		return CLI_USAGE;
	}
	rc = control_call(line->socket, "POST", "/tokens/revoke", body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	session = control_text(answer.json, "session");
	if (line->json)
		control_print_json(answer.json);
	else
		printf("%s: revoked%s%s%s\n",
		        slice_escape(slice_from_string(r->id), shown, sizeof(shown)),
		        session[0] ? ", session " : "", session, session[0] ? " has ended" : "");
	control_answer_free(&answer);
	return 0;
}

int session_revoke_command(int argc, char **argv)
{
	struct revoked r = {NULL, NULL};
	struct control_line line;

	(void)argc;
	if (!control_line_read(&line, "vethguard session revoke", specs, argv + 1, take, &r))
		return CLI_USAGE;
	if (line.help) {
		usage(stdout);
		return 0;
	}
	if (r.signer && r.id && !line.name_count)
		return by_id(&line, &r);
	if (!r.signer && !r.id && line.name_count)
		return by_names(&line);
	fprintf(stderr, "vethguard: error: %s\n%s",
	        line.name_count ? "a name goes without --signer and --id"
	        : r.signer      ? "which tokens? Say so with --id"
	        : r.id          ? "whose tokens? Say so with --signer"
	                        : "which session? Name it",
	        words);
	return CLI_USAGE;
}
