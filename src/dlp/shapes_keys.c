/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of keys by what they consist of, and of keys whose literal does not stand at their
 * beginning. */
#include "dlp/shapes.h"

#include <string.h>
#include <strings.h>

#define SECRET_KEY_N 40
#define SECRET_KEY_NEAR 48 /* bytes between the word and the key */

/* As random ones are: some of each kind, and hardly any of the signs. */
static bool has_mixed_letters(const uint8_t *p, size_t n)
{
	size_t upper = 0, lower = 0, digits = 0;

	for (size_t i = 0; i < n; i++) {
		upper += p[i] >= 'A' && p[i] <= 'Z';
		lower += p[i] >= 'a' && p[i] <= 'z';
		digits += p[i] >= '0' && p[i] <= '9';
	}
	return upper * 7 >= n && lower * 7 >= n && digits >= 2 &&
	       (upper + lower + digits) * 8 >= n * 7;
}

static bool is_key_byte(uint8_t c)
{
	return shape_is_alnum(c) || c == '+' || c == '/';
}

/* True if the text between the word and the key gives the one to the other. */
static bool is_assigned(const uint8_t *between, size_t n)
{
	return memchr(between, '=', n) || memchr(between, ':', n) || memchr(between, '>', n);
}

/* The word "secret" in any case, and soon after it exactly 40 characters of base64. */
bool shape_aws_secret(const struct shape_place *p)
{
	size_t at = p->at + p->literal_n, end;

	if (p->at < 1 || p->n - p->at < 5 ||
	        strncasecmp((const char *)p->text + p->at - 1, "secret", 6) != 0)
		return false;
	end = p->n - at < SECRET_KEY_NEAR ? p->n : at + SECRET_KEY_NEAR;
	while (at < end) {
		size_t run = 0;

		while (at + run < p->n && run <= SECRET_KEY_N && is_key_byte(p->text[at + run]))
			run++;
		if (run > SECRET_KEY_N && p->text[at + SECRET_KEY_N] == '/')
			run = SECRET_KEY_N; /* the next segment of a path */
		if (run == SECRET_KEY_N)
			return is_assigned(p->text + p->at, at - p->at) &&
			       has_mixed_letters(p->text + at, run) &&
			       shape_is_even(p->text + at, run, 12);
		at += run + 1;
	}
	return false;
}

#define ACCESS_KEY_BODY 16

/* The sixteen characters are not followed by more of them in capitals, which a constant's name or
 * encoded data would have. */
bool shape_aws_access(const struct shape_place *p)
{
	size_t end = p->at + p->literal_n + ACCESS_KEY_BODY;

	return end >= p->n || !shape_is(CLASS_CAPS, p->text[end]);
}

/* "sk-" begins keys of many services, and names of many other things. */
bool shape_sk(const struct shape_place *p)
{
	size_t digits = 0, upper = 0;

	for (size_t i = 0; i < p->run; i++) {
		digits += shape_behind(p)[i] >= '0' && shape_behind(p)[i] <= '9';
		upper += shape_behind(p)[i] >= 'A' && shape_behind(p)[i] <= 'Z';
	}
	/* Those of formats of their own. */
	if (memmem(shape_behind(p), p->run, "T3BlbkFJ", 8) ||
	        memmem(shape_behind(p), p->run, "or-v1-", 6))
		return false;
	return shape_bounded(p) && digits >= 3 && (upper >= 3 || digits >= 8) &&
	       shape_is_even(shape_behind(p), p->run, 9);
}

#define OPENAI_HALF 20

bool shape_openai(const struct shape_place *p)
{
	return shape_run_before(CLASS_WORD, p->text, p->at, OPENAI_HALF) == OPENAI_HALF &&
	       p->run >= OPENAI_HALF;
}

#define SENDGRID_ID 22
#define SENDGRID_SECRET 43

bool shape_sendgrid(const struct shape_place *p)
{
	return shape_run(CLASS_WORD, shape_behind(p), p->run, p->run) == SENDGRID_ID &&
	       shape_behind(p)[SENDGRID_ID] == '.' &&
	       shape_run(CLASS_WORD, shape_behind(p) + SENDGRID_ID + 1, p->run - SENDGRID_ID - 1,
	               SENDGRID_SECRET) == SENDGRID_SECRET;
}

bool shape_slack(const struct shape_place *p)
{
	size_t digits = 0;

	for (size_t i = 0; i < p->run; i++)
		digits += shape_behind(p)[i] >= '0' && shape_behind(p)[i] <= '9';
	return digits >= 4;
}

#define TELEGRAM_ID_MIN 8
#define TELEGRAM_ID_MAX 10

bool shape_telegram(const struct shape_place *p)
{
	size_t digits = 0;

	while (digits < p->at && digits <= TELEGRAM_ID_MAX && p->text[p->at - 1 - digits] >= '0' &&
	        p->text[p->at - 1 - digits] <= '9')
		digits++;
	return digits >= TELEGRAM_ID_MIN && digits <= TELEGRAM_ID_MAX;
}

#define SNOWFLAKE_MIN 17

bool shape_discord(const struct shape_place *p)
{
	size_t digits = 0;

	while (digits < p->run && shape_behind(p)[digits] >= '0' && shape_behind(p)[digits] <= '9')
		digits++;
	return digits >= SNOWFLAKE_MIN && digits < p->run && shape_behind(p)[digits] == '/';
}

#define TERRAFORM_ID 14

bool shape_terraform(const struct shape_place *p)
{
	return shape_run_before(CLASS_ALNUM, p->text, p->at, TERRAFORM_ID) == TERRAFORM_ID;
}

#define MAILCHIMP_N 32

bool shape_mailchimp(const struct shape_place *p)
{
	return shape_run_before(CLASS_HEX, p->text, p->at, MAILCHIMP_N) == MAILCHIMP_N &&
	       shape_is_even(p->text + p->at - MAILCHIMP_N, MAILCHIMP_N, 6) &&
	       shape_behind(p)[0] >= '1' && shape_behind(p)[0] <= '9';
}

#define AZURE_ID 3

bool shape_azure_client(const struct shape_place *p)
{
	return shape_run_before(CLASS_TOKEN, p->text, p->at, AZURE_ID) == AZURE_ID;
}

#define DEVOPS_BODY 70

bool shape_azure_devops(const struct shape_place *p)
{
	return shape_run_before(CLASS_ALNUM, p->text, p->at, DEVOPS_BODY) == DEVOPS_BODY;
}

#define UUID_N 36

bool shape_uuid(const struct shape_place *p)
{
	const uint8_t *uuid = shape_behind(p);

	if (p->run < UUID_N)
		return false;
	for (size_t i = 0; i < UUID_N; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? uuid[i] != '-' : !shape_is(CLASS_HEX, uuid[i]))
			return false;
	}
	return true;
}

#define CLOUDFLARE_ID 24

bool shape_cloudflare(const struct shape_place *p)
{
	return shape_run(CLASS_HEX, shape_behind(p), p->run, p->run) == CLOUDFLARE_ID &&
	       shape_behind(p)[CLOUDFLARE_ID] == '-' && p->run > 120;
}

#define CLICKUP_SECRET 32

/* The number of a user, "_", and 32 characters. */
bool shape_clickup(const struct shape_place *p)
{
	size_t digits = 0;

	while (digits < p->run && shape_behind(p)[digits] >= '0' && shape_behind(p)[digits] <= '9')
		digits++;
	return shape_bounded(p) && digits > 0 && p->run == digits + 1 + CLICKUP_SECRET &&
	       shape_behind(p)[digits] == '_';
}
