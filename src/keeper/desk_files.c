/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CA of the configuration. Its files are read again with every check, so that what the operator
 * puts there takes effect without a restart. If they cannot be used, nothing takes their place: new
 * sandboxes are refused, and those that exist go on.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "keeper/desk_private.h"

#define FILE_MAX CA_PAPERS_PEM_MAX

/* Reads to the end, at most FILE_MAX bytes. Returns 0 or -errno. */
static int read_file(int fd, struct secret *out)
{
	int rc = secret_alloc(out, FILE_MAX + 1);
	ssize_t n = 0;

	if (rc < 0)
		return rc;
	do {
		n = read(fd, out->p + out->n, out->cap - out->n);
		if (n > 0)
			out->n += (size_t)n;
	} while ((n > 0 && out->n < out->cap) || (n < 0 && errno == EINTR));
	if (n >= 0 && out->n <= FILE_MAX)
		return 0;
	rc = n < 0 ? -errno : -EFBIG;
	secret_free(out);
	return rc;
}

static bool refuse(struct authorities *all, const char *what, const char *why)
{
	snprintf(all->problem, sizeof(all->problem), "%s: %.400s", what, why);
	return false;
}

static bool read_papers(struct authorities *all, int fd, const char *what, struct ca_papers *out)
{
	struct secret text;
	int rc = read_file(fd, &text);

	out->count = 0;
	if (rc < 0)
		return refuse(all, what, rc == -EFBIG ? "the file is too large" : strerror(-rc));
	rc = ca_papers_read(secret_slice(&text), what, out, all->problem);
	secret_free(&text);
	return rc == 0;
}

/* True if the current CA has this certificate, and its key is in the same kind of place (file or
 * token). */
static bool leads(const struct authorities *all, struct slice certificate, bool elsewhere)
{
	return all->count > 0 && all->list[0]->origin == MESSAGE_CA_CONFIGURED &&
	       ca_key_is_elsewhere(all->list[0]->ca) == elsewhere &&
	       slice_equals(ca_certificate_der(all->list[0]->ca), certificate);
}

/* Makes a checked CA from the pair of files. key: empty if it is in a token; then trial is an
 * intermediate that the token has signed, and is taken. Returns NULL with the reason in
 * all->problem. */
static struct authority *make(
        struct authorities *all, const struct ca_papers *papers, struct slice key, struct ca *trial)
{
	struct ca_papers chain, root;
	char why[CA_WHY_MAX];
	struct ca *ca = trial ? ca_from_certificate(ca_paper(papers, 0), why)
	                      : ca_from_pem(ca_paper(papers, 0), key, why);

	if (ca && ca_chain(ca_paper(papers, 0), papers, &all->roots, &chain, &root, why) != 0) {
		ca_free(ca);
		ca = NULL;
	}
	if (!ca) {
		refuse(all, "ca", why);
		ca_free(trial);
		return NULL;
	}
	if (ca_check(ca, trial, &chain, ca_paper(&root, 0), why, all->note) == 0)
		return authority_of(ca, MESSAGE_CA_CONFIGURED, &chain, &root);
	refuse(all, "ca", why);
	ca_free(ca);
	return NULL;
}

static bool lead(struct authorities *all, struct authority *made, int64_t retires_s)
{
	if (!made)
		return all->problem[0] ? false : refuse(all, "ca", "no memory");
	if (leads(all, ca_certificate_der(made->ca), ca_key_is_elsewhere(made->ca))) {
		authority_put(made);
		return true;
	}
	if (authorities_lead(all, made, retires_s) == 0)
		return true;
	return refuse(all, "ca", "too many earlier roots are still trusted");
}

static bool lead_with_key(
        struct authorities *all, const struct ca_papers *papers, int fd, int64_t retires_s)
{
	struct authority *made;
	struct secret key;
	int rc = read_file(fd, &key);

	if (rc < 0)
		return refuse(
		        all, "ca.key", rc == -EFBIG ? "the file is too large" : strerror(-rc));
	made = make(all, papers, secret_slice(&key), NULL);
	secret_free(&key);
	return lead(all, made, retires_s);
}

/* Lets the CA lead once the token's key has been tried. A trial takes a while: the supervisor asks
 * again after it. */
static bool lead_with_token(
        struct question *q, const struct ca_papers *papers, struct token *token, int64_t retires_s)
{
	struct authorities *all = &q->next;
	struct ca *trial;

	const bool there = leads(all, ca_paper(papers, 0), true);

	if (!token_try(token, ca_paper(papers, 0), !there, &trial)) {
		q->trying = true;
		return refuse(all, "ca.key", "the token's key is being tried");
	}
	if (token->why[0]) {
		ca_free(trial);
		return refuse(all, "ca.key", token->why);
	}
	if (there) {
		ca_free(trial);
		return true;
	}
	return lead(all, make(all, papers, SLICE(""), trial), retires_s);
}

/* The installed CA that ends at one of the configuration's roots leads already. */
static bool lead_installed(struct authorities *all)
{
	const struct authority *a = all->count ? all->list[0] : NULL;

	for (size_t i = 0; a && a->origin == MESSAGE_CA_INSTALLED && i < all->roots.count; i++)
		if (slice_equals(ca_paper(&a->root, 0), ca_paper(&all->roots, i)))
			return true;
	return refuse(all, "ca.root",
	        "no CA below the configuration's root is installed on this node yet: 'vethguard "
	        "ca csr' prints the request, and 'vethguard ca install' takes its certificate");
}

bool desk_configure(struct question *q, struct token *token, const int *fds, int64_t retires_s)
{
	const struct message_keeper_ca_ask *ask = &q->ask;
	struct authorities *all = &q->next;
	static struct ca_papers papers;
	size_t n = 0;

	all->problem[0] = all->note[0] = 0;
	if (ask->problem.n > 0) {
		snprintf(all->problem, sizeof(all->problem), "%.*s",
		        (int)(ask->problem.n < CA_WHY_MAX ? ask->problem.n : CA_WHY_MAX - 1),
		        ask->problem.p);
		return false;
	}
	if (!read_papers(all, fds[n++], "ca.root", &all->roots))
		return false;
	papers = all->roots;
	if ((ask->configured & MESSAGE_CA_CERTIFICATE_FILE) &&
	        !read_papers(all, fds[n++], "ca.certificate", &papers))
		return false;
	if (ask->configured & MESSAGE_CA_KEY_FILE)
		return lead_with_key(all, &papers, fds[n], retires_s);
	if (ask->configured & MESSAGE_CA_TOKEN_KEY)
		return lead_with_token(q, &papers, token, retires_s);
	return lead_installed(all);
}
