/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's own CA:
 *
 *   ca: {root: /etc/vethguard/root.pem, key: "file:/etc/vethguard/root.key"}
 *   ca: {root: root.pem, certificate: node.pem, key: "file:node.key", overlap: 720h}
 *   ca: {root: root.pem}
 *   ca: {constrain_names: true}
 *   ca: {root: root.pem, certificate: node.pem, key: "pkcs11:...", token: {...}}
 */
#include "policy/config/read.h"

#define FILE_SCHEME "file:"
#define PKCS11_SCHEME "pkcs11:"
#define DAY_MS (24u * 3600 * 1000)
#define OVERLAP_MIN_MS (3600u * 1000)
#define OVERLAP_MAX_MS ((uint64_t)3650 * DAY_MS)

static void read_key(struct tree *tree, const struct tree_node *node, struct config *config)
{
	struct tree_node path = *node;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, "key", PATH_MAX / 2, &text))
		return;
	if (slice_starts_with(text, SLICE(PKCS11_SCHEME))) {
		config_read_token_key(tree, node, text, config);
		return;
	}
	if (!slice_starts_with(text, SLICE(FILE_SCHEME)) || text.n == sizeof(FILE_SCHEME) - 1) {
		tree_error(tree, node,
		        "key %s must be \"file:\" and the path of a PEM file, or a pkcs11: URI",
		        tree_quote(text, quoted));
		return;
	}
	path.text = slice_of(text.p + sizeof(FILE_SCHEME) - 1, text.n - sizeof(FILE_SCHEME) + 1);
	config_read_path(tree, &path, "key", config->ca.key);
}

void config_read_ca(struct tree *tree, const struct tree_node *map, struct config *config)
{
	static const char *const known[] = {
	        "root", "certificate", "key", "token", "overlap", "constrain_names", NULL};
	static const char *const words[] = {"false", "true", NULL};
	const struct tree_node *root, *certificate, *key, *token, *overlap, *constrain;
	uint64_t ms;

	if (!tree_is_map(tree, map, "ca"))
		return;
	tree_check_keys(tree, map, known, NULL);
	root = tree_get(map, "root");
	certificate = tree_get(map, "certificate");
	key = tree_get(map, "key");
	token = tree_get(map, "token");
	overlap = tree_get(map, "overlap");
	constrain = tree_get(map, "constrain_names");
	if (root)
		config_read_path(tree, root, "root", config->ca.root);
	if (certificate)
		config_read_path(tree, certificate, "certificate", config->ca.certificate);
	if (key)
		read_key(tree, key, config);
	if (token)
		config_read_token(tree, token, &config->ca.token);
	if (overlap && tree_duration(tree, overlap, "overlap", OVERLAP_MIN_MS, OVERLAP_MAX_MS, &ms))
		config->ca.overlap_s = (uint32_t)(ms / 1000);
	if (constrain)
		config->ca.constrain_names =
		        tree_word(tree, constrain, "constrain_names", words) == 1;
	if (config->ca.token.uri[0] && !token)
		tree_error(
		        tree, key, "token is missing: key is in a token: which module reads it?");
	else if (token && !tree->wrong && !config->ca.token.uri[0])
		tree_error(tree, token, "token needs a key that is a pkcs11: URI");
	if (!root && (certificate || key))
		tree_error(tree, map, "root is missing: the certificate that sandboxes trust");
	else if (certificate && !key)
		tree_error(tree, map,
		        "key is missing: that of certificate. A certificate for a key that this "
		        "node has made is given by 'vethguard ca install'");
}
