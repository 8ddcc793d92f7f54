/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the configuration is read through the same tree as policies. Numbers and
 * durations are rows of two tables (key, field, default, bounds). Every other key has a reader
 * function; those of resolver:, ca:, gateway:, ask:, quota: and egress: are in files of their own.
 * The values start as the defaults, so an empty mapping changes nothing.
 *
 *   resolver: {servers: [9.9.9.9, "[2620:fe::fe]:53"], hosts: {git.example: 192.0.2.7}}
 *   ca: {root: root.pem, key: "file:root.key"}
 *   tokens: {clients: {module: /usr/lib/softhsm/libsofthsm2.so, pin: "file:clients.pin"}}
 *   ca_files: [/etc/ssl/company.pem]
 *   permit: [10.20.0.0/16]
 *   pools: {ipv4: 198.18.0.0/15, ipv6: "fd76:6574:6867::/64"}
 *   proxy_port: 3128
 *   egress: {proxy: "http://proxy.corp:3128", user: vethguard, password_file: proxy.password}
 *   gateway: {listen: "0.0.0.0:8443", certificate: gateway.pem, key: gateway.key}
 *   bundles: [{name: fleet, source: "https://control.example/fleet.bundle", keys: fleet.pub}]
 *   ask: {webhook: {url: "https://chat.example/hook", key: "file:hook.key"}}
 *   quota: {server: "rediss://quota.corp", password: "file:quota.password", hosts: 3}
 *   audit_file: /var/log/vethguard/audit.jsonl
 *   floor: /etc/vethguard/floor.yaml
 *   workers: 2
 *   limits: {connections: 512}
 *   timeouts: {idle: 5m}
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/config/read.h"
#include "vethguard/policy/config.h"
#include "policy/load/loader.h"

#define OF_POLICY "belongs in a policy (--policy), not into the configuration"
#define POOL4_BITS_MAX 24
#define POOL6_BITS_MAX 64
#define POOL_BITS_MIN 8
#define CA_OVERLAP_DEFAULT_S (30u * 24 * 3600)
#define DAY_MS (24u * 3600 * 1000)
/* RFC 2544's benchmarking range: never routed, and no sandbox has any use for it. */
#define POOL4_DEFAULT "198.18.0.0/15"
#define POOL6_DEFAULT "fd76:6574:6867::/64"

struct number_key {
	const char *key;
	size_t offset; /* of a uint32_t in the struct */
	uint32_t by_default, min, max;
};

static const struct number_key limit_keys[] = {
        {"connections", offsetof(struct config_limits, connections), 512, 1, 8000},
        {"upstream_connections", offsetof(struct config_limits, upstream_connections), 512, 1,
                8000},
        {"upstream_idle", offsetof(struct config_limits, upstream_idle), 64, 0, 8000},
        {"streams", offsetof(struct config_limits, streams), 4096, 1, 100000},
        {"udp_flows", offsetof(struct config_limits, udp_flows), 256, 0, 4096},
        {"dns_names", offsetof(struct config_limits, dns_names), 16384, 64, 1000000},
        {"leaf_certificates", offsetof(struct config_limits, leaf_certificates), 512, 1, 100000},
        {"header_bytes", offsetof(struct config_limits, header_bytes), 65536, 4096, 65536},
        {"dns_queries_per_s", offsetof(struct config_limits, dns_queries_per_s), 1000, 1, 100000},
        {"blocked_mints_per_min", offsetof(struct config_limits, blocked_mints_per_min), 60, 0,
                100000},
        {"connections_per_s", offsetof(struct config_limits, connections_per_s), 1000, 1, 100000},
        {"packet_copies_per_s", offsetof(struct config_limits, packet_copies_per_s), 1000, 1,
                100000},
        {"udp_datagrams_per_s", offsetof(struct config_limits, udp_datagrams_per_s), 20000, 1,
                1000000},
        {"refusals_per_s", offsetof(struct config_limits, refusals_per_s), 1000, 1, 100000},
};
#define LIMIT_KEYS (sizeof(limit_keys) / sizeof(limit_keys[0]))

/* In milliseconds. A minimum of 0 means that the timeout may be switched off. */
static const struct number_key timeout_keys[] = {
        {"hello", offsetof(struct config_timeouts, hello_ms), 10000, 100, DAY_MS},
        {"header", offsetof(struct config_timeouts, header_ms), 30000, 100, DAY_MS},
        {"idle", offsetof(struct config_timeouts, idle_ms), 300000, 100, DAY_MS},
        {"connect", offsetof(struct config_timeouts, connect_ms), 10000, 100, DAY_MS},
        {"response", offsetof(struct config_timeouts, response_ms), 300000, 100, DAY_MS},
        {"request", offsetof(struct config_timeouts, request_ms), 0, 0, 7 * DAY_MS},
        {"resolve", offsetof(struct config_timeouts, resolve_ms), 5000, 100, DAY_MS},
        {"udp_idle", offsetof(struct config_timeouts, udp_idle_ms), 60000, 100, DAY_MS},
};
#define TIMEOUT_KEYS (sizeof(timeout_keys) / sizeof(timeout_keys[0]))

static void set_number(void *base, const struct number_key *key, uint32_t value)
{
	memcpy((uint8_t *)base + key->offset, &value, sizeof(value));
}

void config_init(struct config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < LIMIT_KEYS; i++)
		set_number(&config->limits, &limit_keys[i], limit_keys[i].by_default);
	for (size_t i = 0; i < TIMEOUT_KEYS; i++)
		set_number(&config->timeouts, &timeout_keys[i], timeout_keys[i].by_default);
	ip_prefix_parse(SLICE(POOL4_DEFAULT), &config->pool4);
	ip_prefix_parse(SLICE(POOL6_DEFAULT), &config->pool6);
	config->proxy_port = PROXY_PORT_DEFAULT;
	config->workers = 1;
	config->ca.overlap_s = CA_OVERLAP_DEFAULT_S;
	config_gateway_init(&config->gateway);
}

void config_fini(struct config *config)
{
	free(config->hosts);
	config_gateway_fini(&config->gateway);
	free(config->bundles);
	free(config->tokens);
	secret_free(&config->egress_password);
	config_init(config);
}

/* Reads a mapping of numbers or durations with the keys of the table. */
static void read_numbers(struct tree *tree, const struct tree_node *map, const char *what,
        const struct number_key *keys, size_t count, bool durations, void *base)
{
	const char *known[LIMIT_KEYS + TIMEOUT_KEYS + 1] = {NULL};

	if (!tree_is_map(tree, map, what))
		return;
	for (size_t i = 0; i < count; i++)
		known[i] = keys[i].key;
	tree_check_keys(tree, map, known, NULL);
	for (size_t i = 0; i < count; i++) {
		const struct tree_node *node = tree_get(map, keys[i].key);
		uint64_t value;

		if (node && (durations ? tree_duration(tree, node, keys[i].key, keys[i].min,
		                                 keys[i].max, &value)
		                       : tree_uint(tree, node, keys[i].key, keys[i].min,
		                                 keys[i].max, &value)))
			set_number(base, &keys[i], (uint32_t)value);
	}
}

static void read_ca_files(struct tree *tree, struct tree_node *node, struct config *config)
{
	struct tree_item single;

	for (const struct tree_item *item = tree_items(tree, node, "ca_files", &single); item;
	        item = item->next) {
		if (config->ca_file_count == CONFIG_CA_FILES_MAX) {
			tree_error(tree, item->value, "more than %d files", CONFIG_CA_FILES_MAX);
			return;
		}
		if (config_read_path(tree, item->value, "a CA file",
		            config->ca_files[config->ca_file_count]))
			config->ca_file_count++;
	}
}

static bool read_prefix(
        struct tree *tree, const struct tree_node *node, const char *what, struct ip_prefix *out)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, what, IP_TEXT_MAX + 8, &text))
		return false;
	if (ip_prefix_parse(text, out))
		return true;
	tree_error(tree, node,
	        "%s %s must be a network such as 10.20.0.0/16 or fd00::/8, without bits behind it",
	        what, tree_quote(text, quoted));
	return false;
}

static void read_permit(struct tree *tree, struct tree_node *node, struct config *config)
{
	struct tree_item single;

	for (const struct tree_item *item = tree_items(tree, node, "permit", &single); item;
	        item = item->next) {
		if (config->permit_count == CONFIG_PREFIXES_MAX) {
			tree_error(tree, item->value, "more than %d networks", CONFIG_PREFIXES_MAX);
			return;
		}
		if (read_prefix(tree, item->value, "permit", &config->permit[config->permit_count]))
			config->permit_count++;
	}
}

static void read_pool(struct tree *tree, const struct tree_node *node, const char *what,
        uint8_t family, uint8_t max, struct ip_prefix *out)
{
	struct ip_prefix pool;

	if (!node || !read_prefix(tree, node, what, &pool))
		return;
	if (pool.base.family != family)
		tree_error(tree, node, "pool %s must be an IPv%u network", what, family);
	else if (pool.bits < POOL_BITS_MIN || pool.bits > max)
		tree_error(tree, node, "pool %s must have %u to %u bits, not %u", what,
		        POOL_BITS_MIN, max, pool.bits);
	else
		*out = pool;
}

static void read_pools(struct tree *tree, const struct tree_node *map, struct config *config)
{
	static const char *const known[] = {"ipv4", "ipv6", NULL};

	if (!tree_is_map(tree, map, "pools"))
		return;
	tree_check_keys(tree, map, known, NULL);
	read_pool(tree, tree_get(map, "ipv4"), "ipv4", 4, POOL4_BITS_MAX, &config->pool4);
	read_pool(tree, tree_get(map, "ipv6"), "ipv6", 6, POOL6_BITS_MAX, &config->pool6);
}

/* Several workers count these limits by themselves, each up to its part. */
static const char *const divided[] = {"connections", "upstream_connections", "upstream_idle",
        "streams", "leaf_certificates", "blocked_mints_per_min", "refusals_per_s"};
#define DIVIDED_KEYS (sizeof(divided) / sizeof(divided[0]))

static const struct number_key *limit_key(const char *name)
{
	for (size_t i = 0; i < LIMIT_KEYS; i++)
		if (strcmp(limit_keys[i].key, name) == 0)
			return &limit_keys[i];
	return NULL;
}

static uint32_t get_number(const void *base, const struct number_key *key)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)base + key->offset, sizeof(value));
	return value;
}

void config_limits_divide(struct config_limits *limits, uint32_t workers)
{
	for (size_t i = 0; i < DIVIDED_KEYS; i++) {
		const struct number_key *key = limit_key(divided[i]);

		set_number(limits, key, get_number(limits, key) / workers);
	}
}

/* After limits:, of which each worker has to get a part. */
static void read_workers(struct tree *tree, const struct tree_node *node, struct config *config)
{
	uint64_t value;

	if (!tree_uint(tree, node, "workers", 1, CONFIG_WORKERS_MAX, &value))
		return;
	config->workers = (uint32_t)value;
	for (size_t i = 0; i < DIVIDED_KEYS; i++) {
		uint32_t limit = get_number(&config->limits, limit_key(divided[i]));

		if (limit > 0 && limit < config->workers)
			tree_error(tree, node,
			        "workers: %u is more than limits: %s: %u, of which each worker "
			        "gets a part: use fewer workers, or raise the limit",
			        config->workers, divided[i], limit);
	}
}

static void read_top(struct tree *tree, bool is_private, struct config *config)
{
	static const char *const known[] = {"vethguard", "resolver", "ca", "ca_files", "permit",
	        "pools", "proxy_port", "egress", "audit_file", "limits", "timeouts", "watch",
	        "gateway", "bundles", "ask", "quota", "floor", "tokens", "workers", NULL};
	static const struct tree_refusal refused[] = {{"allow", OF_POLICY}, {"deny", OF_POLICY},
	        {"credentials", OF_POLICY}, {"groups", OF_POLICY}, {"include", OF_POLICY},
	        {"variables", OF_POLICY}, {"mode", OF_POLICY}, {NULL, NULL}};
	static const char *const words[] = {"false", "true", NULL};
	struct tree_node *root = tree->root, *node;
	uint64_t value;

	if (!tree_is_map(tree, root, "a configuration"))
		return;
	tree_check_keys(tree, root, known, refused);
	if ((node = tree_get(root, "vethguard")))
		tree_uint(tree, node, "vethguard (the language version)", 1, 1, &value);
	if ((node = tree_get(root, "resolver")))
		config_read_resolver(tree, node, config);
	if ((node = tree_get(root, "ca")))
		config_read_ca(tree, node, config);
	if ((node = tree_get(root, "tokens")))
		config_read_tokens(tree, node, config);
	if ((node = tree_get(root, "gateway")))
		config_read_gateway(tree, node, &config->gateway);
	if ((node = tree_get(root, "bundles")))
		config_read_bundles(tree, node, config);
	config_check_bundle_names(tree, config);
	if ((node = tree_get(root, "ask")))
		config_read_ask(tree, node, &config->ask);
	if ((node = tree_get(root, "quota")))
		config_read_quota(tree, node, &config->quota);
	if ((node = tree_get(root, "ca_files")))
		read_ca_files(tree, node, config);
	if ((node = tree_get(root, "permit")))
		read_permit(tree, node, config);
	if ((node = tree_get(root, "pools")))
		read_pools(tree, node, config);
	if ((node = tree_get(root, "proxy_port")) &&
	        tree_uint(tree, node, "proxy_port", 1, UINT16_MAX, &value))
		config->proxy_port = (uint16_t)value;
	if ((node = tree_get(root, "egress")))
		config_read_egress(tree, node, is_private, config);
	if ((node = tree_get(root, "audit_file")))
		config_read_path(tree, node, "audit_file", config->audit_file);
	if ((node = tree_get(root, "floor")))
		config_read_path(tree, node, "floor", config->floor);
	if ((node = tree_get(root, "watch")))
		config->watch = tree_word(tree, node, "watch", words) == 1;
	if ((node = tree_get(root, "limits")))
		read_numbers(tree, node, "limits", limit_keys, LIMIT_KEYS, false, &config->limits);
	if ((node = tree_get(root, "timeouts")))
		read_numbers(tree, node, "timeouts", timeout_keys, TIMEOUT_KEYS, true,
		        &config->timeouts);
	if ((node = tree_get(root, "workers")))
		read_workers(tree, node, config);
}

static int read_text(
        struct tree *tree, const char *text, size_t n, bool is_private, struct config *config)
{
	int rc;

	if (!config->hosts)
		config->hosts = calloc(CONFIG_HOSTS_MAX, sizeof(*config->hosts));
	if (!config->hosts)
		return -ENOMEM;
	rc = tree_parse(tree, text, n);
	if (rc != 0)
		return rc;
	read_top(tree, is_private, config);
	return tree->wrong ? -EINVAL : 0;
}

int config_load(const struct policy_reader *reader, const char *path, struct config *config,
        struct diag_list *diags)
{
	struct arena arena;
	struct tree tree = {.arena = &arena, .diags = diags, .file = path};
	char *text = NULL;
	size_t n = 0;
	int rc = reader->read(reader->context, path, &text, &n);

	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		diag_add(diags, path, 0, 0, "cannot read the configuration: %s",
		        rc == -EFBIG    ? "the file is too large"
		        : rc == -EINVAL ? "not a regular file"
		                        : strerror(-rc));
		return -EINVAL;
	}
	arena_init(&arena);
	rc = config_take_password(text, n, &config->egress_password);
	if (rc == 0)
		rc = read_text(&tree, text, n,
		        reader->is_private && reader->is_private(reader->context), config);
	if (arena.failed)
		rc = -ENOMEM;
	arena_fini(&arena);
	free(text);
	return rc;
}
