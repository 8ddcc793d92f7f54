/* SPDX-License-Identifier: Apache-2.0 */
/* shapes: what a format asks for beside its literal and the characters behind it: checksums,
 * evenness, and what stands before. */
#ifndef VETHGUARD_SRC_DLP_SHAPES_H
#define VETHGUARD_SRC_DLP_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a pattern's literal was found. */
struct shape_place {
	const uint8_t *text;
	size_t n;
	size_t at;        /* of the literal */
	size_t literal_n; /* its bytes */
	size_t run;       /* bytes of the pattern's class behind it */
};

enum shape_class {
	CLASS_ALNUM,  /* letters and digits */
	CLASS_WORD,   /* and "-", "_" */
	CLASS_TOKEN,  /* and ".", "=", "~" */
	CLASS_BASE64, /* letters, digits, "+", "/", "=", "-", "_" */
	CLASS_BASE32, /* A-Z and 2-7 */
	CLASS_CAPS,   /* A-Z and digits */
	CLASS_LOWER,  /* a-z and digits */
	CLASS_HEX,
	CLASS_COUNT
};

static inline bool shape_is_alnum(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* What follows the literal. */
static inline const uint8_t *shape_behind(const struct shape_place *p)
{
	return p->text + p->at + p->literal_n;
}

/* How many bytes of the class text begins with, at most max. */
size_t shape_run(enum shape_class class, const uint8_t *text, size_t n, size_t max);
/* How many bytes of the class stand before text[at], at most max. */
size_t shape_run_before(enum shape_class class, const uint8_t *text, size_t at, size_t max);
bool shape_is(enum shape_class class, uint8_t c);
/* True if the bytes are used as evenly as if they were drawn from `letters` ones: a sample such as
 * "xxxxxxxx" is not. */
bool shape_is_even(const uint8_t *p, size_t n, unsigned letters);

/* The checks: true if what stands there is of the format. */
typedef bool (*shape_check)(const struct shape_place *p);
/* shapes.c */
bool shape_github(const struct shape_place *p);
bool shape_npm(const struct shape_place *p);
bool shape_grafana(const struct shape_place *p);
bool shape_jwt(const struct shape_place *p);
bool shape_pem(const struct shape_place *p);
bool shape_openssh(const struct shape_place *p);
bool shape_putty(const struct shape_place *p);
bool shape_pypi(const struct shape_place *p);
bool shape_bounded(const struct shape_place *p); /* no letter or digit before the literal */
bool shape_exact(const struct shape_place *p);   /* and none behind; the run has its least length */
/* shapes_keys.c */
bool shape_aws_secret(const struct shape_place *p);
bool shape_aws_access(const struct shape_place *p);
bool shape_sk(const struct shape_place *p);
bool shape_openai(const struct shape_place *p);
bool shape_sendgrid(const struct shape_place *p);
bool shape_slack(const struct shape_place *p);
bool shape_telegram(const struct shape_place *p);
bool shape_discord(const struct shape_place *p);
bool shape_terraform(const struct shape_place *p);
bool shape_mailchimp(const struct shape_place *p);
bool shape_azure_client(const struct shape_place *p);
bool shape_azure_devops(const struct shape_place *p);
bool shape_uuid(const struct shape_place *p); /* a UUID behind the literal */
bool shape_clickup(const struct shape_place *p);
bool shape_cloudflare(const struct shape_place *p);

#endif
