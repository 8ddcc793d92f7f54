/* SPDX-License-Identifier: Apache-2.0 */
/* Says where a name leads. A refused address comes with the line of the configuration that permits
 * it. */
#include <stdio.h>

#include "cli/policy/resolve.h"

static const char *const state_names[] = {
        [RESOLVE_PASSES] = "passes",
        [RESOLVE_PARTLY] = "partly",
        [RESOLVE_REFUSED] = "refused",
        [RESOLVE_NOWHERE] = "nowhere",
        [RESOLVE_NOT_ASKED] = "not-asked",
};

static const char *kind_of(const struct resolve_address *a)
{
	return a->own && ip_classify(&a->ip) != IP_LOOPBACK ? "this machine's own"
	                                                    : ip_class_name(ip_classify(&a->ip));
}

static void append(char out[RESOLVE_TEXT_MAX], const char *text)
{
	size_t n = strlen(out);

	snprintf(out + n, RESOLVE_TEXT_MAX - n, "%s", text);
}

/* "10.0.0.5, which is private, and fd00::5, which is private" */
static size_t list_refused(const struct resolve_name *name, char out[RESOLVE_TEXT_MAX])
{
	char ip[IP_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < name->count; i++) {
		const struct resolve_address *a = &name->addresses[i];

		if (!a->refused)
			continue;
		append(out, n++ ? ", and " : "");
		append(out, ip_format(&a->ip, ip));
		append(out, ", which is ");
		append(out, kind_of(a));
	}
	return n;
}

/* Lists the networks as YAML: an IPv6 address is quoted because of its colons. */
static void list_permits(const struct resolve_name *name, char out[RESOLVE_TEXT_MAX])
{
	char ip[IP_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < name->count; i++) {
		const struct resolve_address *a = &name->addresses[i];

		if (!a->refused)
			continue;
		append(out, n++ ? ", " : "");
		append(out, a->ip.family == 6 ? "'" : "");
		append(out, ip_format(&a->ip, ip));
		append(out, a->ip.family == 6 ? "'" : "");
	}
}

static void say_remedy(const struct resolve *r, const struct resolve_name *name, size_t refused,
        char out[RESOLVE_TEXT_MAX])
{
	char shown[256];

	append(out, refused > 1 ? ": permit them with " : ": permit it with ");
	append(out, r->config.permit_count ? "" : "\"permit: [");
	list_permits(name, out);
	append(out, r->config.permit_count ? " in the list permit: of " : "]\" in ");
	if (r->config_path)
		append(out, slice_escape(slice_from_string(r->config_path), shown, sizeof(shown)));
	else
		append(out,
		        "the configuration (run --config FILE, or the daemon's vethguard.yaml)");
}

const char *resolve_text(
        const struct resolve *r, const struct resolve_name *name, char out[RESOLVE_TEXT_MAX])
{
	const struct config_egress *egress = &r->config.egress;
	char ip[IP_TEXT_MAX];

	out[0] = '\0';
	switch (name->state) {
	case RESOLVE_PASSES:
		append(out, "leads to ");
		for (size_t i = 0; i < name->count; i++) {
			append(out, i ? ", " : "");
			append(out, ip_format(&name->addresses[i].ip, ip));
		}
		break;
	case RESOLVE_PARTLY:
		append(out, "leads to addresses that pass, and also to ");
		say_remedy(r, name, list_refused(name, out), out);
		break;
	case RESOLVE_REFUSED:
		append(out, "leads to ");
		say_remedy(r, name, list_refused(name, out), out);
		break;
	case RESOLVE_NOWHERE:
		append(out, "cannot be resolved: ");
		append(out, name->error ? name->error : "there is no address");
		break;
	case RESOLVE_NOT_ASKED:
		append(out, egress->proxy_port && !egress->resolve_local
		                    ? "was not looked up: the egress proxy resolves names"
		                    : "was not looked up: --resolve asks the name servers");
		break;
	}
	return out;
}

void resolve_json(const struct resolve *r, const struct resolve_name *name, struct json *j)
{
	char text[RESOLVE_TEXT_MAX], ip[IP_TEXT_MAX];

	json_literal(j, "state", state_names[name->state]);
	json_array(j, "addresses");
	for (size_t i = 0; i < name->count; i++) {
		json_object(j, NULL);
		json_literal(j, "address", ip_format(&name->addresses[i].ip, ip));
		json_literal(j, "kind", kind_of(&name->addresses[i]));
		json_bool(j, "refused", name->addresses[i].refused);
		json_end_object(j);
	}
	json_end_array(j);
	json_literal(j, "message", resolve_text(r, name, text));
}
