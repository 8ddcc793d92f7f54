/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_policy: any bytes as a policy, as a floor, and as a configuration. What loads must open,
 * decide and explain, and compare with another one; the last bytes of the input then damage the
 * image, and what policy_open() still takes must be safe to use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/policy/config.h"
#include "vethguard/policy/diff.h"
#include "vethguard/policy/explain.h"
#include "vethguard/policy/load.h"
#include "vethguard/policy/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

/* The main file is the input; what it includes has one rule, and a credential where its name says
 * so, so that includes and what overrides their sources are exercised as well. */
static int read_input(void *context, const char *path, char **text, size_t *n)
{
	static const char rule[] = "vethguard: 1\nallow: [{to: included.example}]\n";
	static const char key[] = "vethguard: 1\ncredentials: {key: {source: 'env:K', inject: "
	                          "bearer}}\n";
	const struct input *input = context;
	const char *included = strstr(path, "key") ? key : rule;
	bool is_main = strcmp(path, "/fuzz.yaml") == 0;

	*n = is_main ? input->size : strlen(included);
	*text = malloc(*n + 1);
	if (!*text)
		return -ENOMEM;
	memcpy(*text, is_main ? (const char *)input->data : included, *n);
	(*text)[*n] = '\0';
	return 0;
}

/* Reads the input as the floor, and a policy that allows much as anything else. */
static int read_below(void *context, const char *path, char **text, size_t *n)
{
	static const char policy[] = "vethguard: 1\nallow: [{to: ['*.example', api.example.com, "
	                             "'tcp://a.example:443']}]\n"
	                             "deny: [{to: a.example, methods: [GET]}]\n";
	struct input below = {(const uint8_t *)policy, sizeof(policy) - 1};
	const bool is_floor = strcmp(path, "/floor.yaml") == 0;

	return read_input(is_floor ? context : &below, "/fuzz.yaml", text, n);
}

static void ignore_rule(void *context, const struct policy_rule_report *report)
{
	size_t *sum = context;

	*sum += report->name.n + report->to.n + report->file.n;
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	static const struct policy_field fields[] = {
	        {{"x-a", 3}, {"b, c", 4}}, {{"X_A", 3}, {"", 0}}};

	(void)context;
	if (*at == sizeof(fields) / sizeof(fields[0]))
		return false;
	*out = fields[(*at)++];
	return true;
}

static void ask(const struct policy *policy, enum policy_scheme scheme, struct slice host,
        struct slice method, struct slice path)
{
	const struct policy_fields fields = {NULL, next_field};
	struct policy_request request = {.scheme = scheme,
	        .host = host,
	        .port = 443,
	        .method = method,
	        .path = path,
	        .query = SLICE("a=b&A[]=%62;c&%zz=1"),
	        .fields = &fields};
	struct policy_decision decision;
	struct policy_credential credential;
	size_t sum = 0;

	policy_decide(policy, &request, &decision);
	policy_rule_name(policy, decision.rule);
	policy_credential(policy, decision.credential, &credential);
	policy_decide_tls(policy, &request, &decision);
	ip_parse(SLICE("10.1.2.3"), &request.address);
	policy_decide(policy, &request, &decision);
	policy_explain(policy, &request, ignore_rule, &sum);
}

static void use(const struct policy *policy)
{
	uint16_t ports[POLICY_UDP_PORTS_MAX];

	ask(policy, POLICY_HTTPS, SLICE("api.example.com"), SLICE("GET"), SLICE("/a//b/c%2Fd"));
	ask(policy, POLICY_HTTP, SLICE("a.example"), SLICE("DELETE"), SLICE("/"));
	ask(policy, POLICY_TCP, SLICE("a.example"), SLICE(""), SLICE(""));
	ask(policy, POLICY_UDP, SLICE("x.y.a.example"), SLICE(""), SLICE(""));
	policy_udp_ports(policy, ports, POLICY_UDP_PORTS_MAX);
	policy_tcp_ports(policy, ports, POLICY_UDP_PORTS_MAX);
	policy_mentions_host(policy, SLICE("a.example"));
}

/* Each three bytes from the end of the input: a place (scaled to the image) and a value. */
static void damage(uint8_t *image, size_t size, const struct input *input)
{
	struct policy policy;

	for (size_t i = 0; i + 3 <= input->size && i < 24; i += 3) {
		const uint8_t *p = input->data + input->size - i - 3;

		image[(size_t)(p[0] << 8 | p[1]) * size / 65536] ^= p[2];
		if (policy_open(&policy, image, size) == 0)
			use(&policy);
	}
}

/* A policy never differs from itself. */
static void compare(const struct policy *policy, const uint8_t *image, size_t size)
{
	struct policy_diff diff;
	struct policy same;

	if (policy_open(&same, image, size) != 0 || policy_diff(policy, &same, &diff) != 0)
		return;
	if (diff.differs)
		abort();
	policy_diff_fini(&diff);
}

/* Any policy against one that the harness wrote. */
static void compare_with_fixed(const struct policy *policy, bool first)
{
	static const char text[] =
	        "vethguard: 1\nallow:\n  - to: [https://*.example, https://a.example]\n"
	        "    methods: [GET]\n    paths: [/a/**, /b*]\n"
	        "deny:\n  - {to: https://a.example, paths: [/a/b/*]}\n";
	struct input input = {(const uint8_t *)text, sizeof(text) - 1};
	struct policy_reader reader = {&input, read_input, "/presets"};
	struct diag_list diags = {.count = 0};
	struct policy_diff diff;
	struct policy fixed;
	uint8_t *image;
	size_t size;

	if (policy_load(&reader, "/fuzz.yaml", NULL, &image, &size, &diags) != 0 ||
	        policy_open(&fixed, image, size) != 0)
		abort();
	if (policy_diff(first ? policy : &fixed, first ? &fixed : policy, &diff) == 0)
		policy_diff_fini(&diff);
	free(image);
}

/* Loads the input as the floor of a policy. Apart from its infrastructure, a floor never lets pass
 * what the policy alone would not. */
static void load_floor(struct input *input)
{
	struct policy_reader reader = {input, read_below, "/presets"};
	struct policy_load_options options = {.floor = "/floor.yaml"};
	struct diag_list diags = {.count = 0};
	struct policy policy, floor;
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("other.invalid"),
	        .port = 443,
	        .method = SLICE("GET"),
	        .path = SLICE("/")};
	struct policy_decision d;
	uint8_t *image;
	size_t size;
	int rc = policy_load(&reader, "/fuzz.yaml", &options, &image, &size, &diags);

	if (rc == -EINVAL && diags.count == 0)
		abort();
	if (rc != 0)
		return;
	if (policy_open(&policy, image, size) != 0)
		abort();
	use(&policy);
	compare(&policy, image, size);
	policy_decide(&policy, &request, &d);
	if (d.verdict == POLICY_ALLOW && !d.observed &&
	        policy_decision_layer(&policy, &d) != POLICY_LAYER_INFRASTRUCTURE)
		abort();
	if (policy_floor(&policy, &floor))
		use(&floor);
	damage(image, size, input);
	free(image);
}

static void load_config(const struct policy_reader *reader)
{
	struct diag_list diags = {.count = 0};
	struct config config;

	config_init(&config);
	config_load(reader, "/fuzz.yaml", &config, &diags);
	config_fini(&config);
}

static void read_texts(const struct input *input)
{
	struct slice text = slice_of(input->data, input->size);
	char host[POLICY_HOST_MAX + 1], once[1024], twice[1024];
	struct url url;
	size_t n, m;

	url_canonical_host(text, host, &n);
	url_parse(text, &url);
	if (url_canonical_path(text, once, sizeof(once), &n))
		if (!url_canonical_path(slice_of(once, n), twice, sizeof(twice), &m) ||
		        !slice_equals(slice_of(once, n), slice_of(twice, m)))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct policy_reader reader = {&input, read_input, "/presets"};
	static const struct policy_variable variables[] = {
	        {SLICE("a"), SLICE("acme/site")}, {SLICE("host"), SLICE("a.example")}};
	struct policy_load_options options = {.variables = variables, .variable_count = 2};
	struct diag_list diags = {.count = 0};
	struct policy policy;
	uint8_t *image;
	size_t image_size;
	int rc = policy_load(&reader, "/fuzz.yaml", &options, &image, &image_size, &diags);

	if (rc == -EINVAL && diags.count == 0)
		abort();
	if (rc == 0) {
		if (policy_open(&policy, image, image_size) != 0)
			abort();
		use(&policy);
		compare(&policy, image, image_size);
		compare_with_fixed(&policy, true);
		compare_with_fixed(&policy, false);
		damage(image, image_size, &input);
		free(image);
	}
	load_floor(&input);
	load_config(&reader);
	read_texts(&input);
	return 0;
}
