/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each file is loaded on its own. All faults of all files are shown before the
 * command returns its status. A note tells what is not a fault but probably not meant; it does not
 * change the status. */
#include "cli/policy/policy.h"
#include "vethguard/policy/expose.h"

#define JSON_MAX (16u << 20)

static const struct policy_usage usage = {
        .command = "vethguard policy check",
        .words = {"FILE"},
        .more = true,
        .resolves = true,
        .text = "Loads each policy with all that it includes, and names each fault with its file, "
                "line\nand column. A note names what is valid but probably a mistake. With "
                "--resolve or\n--config it also looks up the hosts of the policy, and names the "
                "addresses that would\nbe refused.\nExit status: 0 all are valid, 1 a host has no "
                "address, or only refused ones,\n2 a policy or the configuration does not load.\n",
        .examples = "  vethguard policy check policies/*.yaml\n"
                    "  vethguard policy check agent.yaml --var repo=acme/site\n"
                    "  vethguard policy check agent.yaml --resolve --config vethguard.yaml\n"
                    "  vethguard policy check agent.yaml --json | jq '.[].errors'\n",
};

static const char *mode_name(const struct policy *policy)
{
	return policy_mode(policy) == POLICY_OBSERVE ? "observe" : "enforce";
}

/* Returns how many rules are the policy's own, and not the floor's. */
static uint32_t own_rules(const struct policy *policy)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < policy_rule_count(policy); i++)
		count += policy_rule_layer(policy, i) == POLICY_LAYER_POLICY;
	return count;
}

static void print_good(const char *path, const struct policy *policy)
{
	char name[POLICY_NAME_MAX * 4 + 1], shown[1024], exposed[64] = "";
	uint32_t ports = policy_expose_count(policy), rules = own_rules(policy);

	if (ports)
		snprintf(exposed, sizeof(exposed), ", %u exposed port%s", ports,
		        ports == 1 ? "" : "s");
	slice_escape(policy_name(policy), name, sizeof(name));
	slice_escape(slice_from_string(path), shown, sizeof(shown));
	printf("%s: good: policy \"%s\", %u rule%s, %u credential%s%s, mode %s%s, fingerprint "
	       "%.*s\n",
	        shown, name, rules, rules == 1 ? "" : "s", policy_credential_count(policy),
	        policy_credential_count(policy) == 1 ? "" : "s", exposed, mode_name(policy),
	        policy_has_layers(policy) ? ", with a floor" : "",
	        SLICE_ARG(policy_fingerprint(policy)));
}

static void write_exposed(struct json *j, const struct policy *policy)
{
	char text[POLICY_EXPOSE_TEXT_MAX];

	json_array(j, "exposed");
	for (uint32_t i = 0; i < policy_expose_count(policy); i++)
		json_string(j, NULL,
		        slice_from_string(policy_expose_text(policy, i, text, sizeof(text))), 0);
	json_end_array(j);
}

static void write_names(struct json *j, const struct resolve *hosts)
{
	bool resolves = hosts->dropped == 0;

	json_array(j, "hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		const struct resolve_name *name = &hosts->names[i];

		resolves = resolves && !resolve_fails(name);
		json_object(j, NULL);
		json_literal(j, "host", name->host);
		json_literal(j, "file", name->file);
		json_uint(j, "line", name->line);
		json_uint(j, "column", name->column);
		resolve_json(hosts, name, j);
		json_end_object(j);
	}
	json_end_array(j);
	json_uint(j, "hosts_not_shown", hosts->dropped);
	json_bool(j, "resolves", resolves);
}

/* Names that pass are not listed, just as correct rules are not. */
static void print_names(const char *path, const struct resolve *hosts)
{
	char text[RESOLVE_TEXT_MAX], shown[1024];
	size_t unknown = 0;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct resolve_name *name = &hosts->names[i];

		unknown += name->state == RESOLVE_NOT_ASKED;
		if (name->state != RESOLVE_PASSES && name->state != RESOLVE_NOT_ASKED)
			fprintf(stderr, "%s:%u:%u: %s: \"%s\" %s\n", name->file, name->line,
			        name->column, resolve_fails(name) ? "error" : "note", name->host,
			        resolve_text(hosts, name, text));
	}
	slice_escape(slice_from_string(path), shown, sizeof(shown));
	if (unknown)
		fprintf(stderr, "%s: note: %zu of %zu hosts %s\n", shown, unknown, hosts->count,
		        hosts->config.egress.proxy_port && !hosts->config.egress.resolve_local
		                ? "were not looked up, because the egress proxy resolves names"
		                : "are not in hosts; --resolve asks the name servers for them");
	if (hosts->dropped)
		fprintf(stderr,
		        "%s: error: names more than %d hosts; the others were not looked "
		        "up\n",
		        shown, RESOLVE_NAMES_MAX);
}

static bool names_fail(const struct resolve *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		if (resolve_fails(&hosts->names[i]))
			return true;
	return hosts->dropped > 0;
}

static void write_json(struct json *j, const char *path, const struct policy_loaded *loaded, int rc,
        const struct diag_list *diags, const struct diag_list *notes, const struct resolve *hosts)
{
	json_object(j, NULL);
	json_literal(j, "file", path);
	json_bool(j, "good", rc == 0);
	if (rc == 0) {
		json_string(j, "name", policy_name(&loaded->policy), 0);
		json_uint(j, "rules", own_rules(&loaded->policy));
		json_bool(j, "has_floor", policy_has_layers(&loaded->policy));
		json_uint(j, "credentials", policy_credential_count(&loaded->policy));
		write_exposed(j, &loaded->policy);
		json_literal(j, "mode", mode_name(&loaded->policy));
		json_string(j, "fingerprint", policy_fingerprint(&loaded->policy), 0);
	}
	policy_diags_json(j, "errors", diags);
	json_uint(j, "errors_not_shown", diags->dropped);
	policy_diags_json(j, "notes", notes);
	json_uint(j, "notes_not_shown", notes->dropped);
	if (rc == 0 && hosts)
		write_names(j, hosts);
	json_end_object(j);
}

/* Returns the exit status for one file. */
static int check_file(const char *path, struct policy_options *options, struct json *j)
{
	struct diag_list diags = {.count = 0}, notes = {.count = 0};
	struct resolve *hosts = options->hosts;
	struct policy_loaded loaded;
	int rc, status;

	options->notes = &notes;
	if (hosts)
		resolve_clear(hosts);
	rc = policy_load_file(path, options, &loaded, &diags);
	options->notes = NULL;
	if (rc == 0)
		policy_note_floor(path, options, &loaded.policy, &notes);
	status = rc == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	if (rc == 0 && hosts && !resolve_names(hosts, &loaded.policy))
		status = POLICY_EXIT_BAD;
	if (status == POLICY_EXIT_GOOD && hosts && names_fail(hosts))
		status = POLICY_EXIT_DENIED;
	if (options->json) {
		write_json(j, path, &loaded, rc, &diags, &notes, hosts);
	} else {
		policy_print_notes(&notes);
		if (rc == 0 && hosts)
			print_names(path, hosts);
		if (rc == 0)
			print_good(path, &loaded.policy);
		else
			diag_print(&diags, stderr);
	}
	policy_unload(&loaded);
	return status;
}

static int check_files(char **paths, int count, struct policy_options *options)
{
	int status = POLICY_EXIT_GOOD;
	struct json j;
	struct buf buf;

	buf_init(&buf, JSON_MAX);
	json_begin(&j, &buf);
	json_array(&j, NULL);
	for (int i = 0; i < count; i++) {
		int one = check_file(paths[i], options, &j);

		status = one > status ? one : status;
	}
	json_end_array(&j);
	if (options->json)
		return policy_print_json(&j, &buf, status);
	buf_fini(&buf);
	return status;
}

int policy_check_command(int argc, char **argv)
{
	struct policy_options options;
	struct resolve hosts;
	int n = policy_take_options(&usage, argv, &options);
	int status = POLICY_EXIT_BAD;

	(void)argc;
	if (n <= 0)
		return n == 0 ? POLICY_EXIT_GOOD : POLICY_EXIT_BAD;
	if (!options.resolve && !options.config)
		return check_files(argv, n, &options);
	options.hosts = &hosts;
	if (resolve_open(&hosts, options.config, options.resolve))
		status = check_files(argv, n, &options);
	resolve_close(&hosts);
	return status;
}
