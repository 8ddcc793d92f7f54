/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target once over each file named on the command line: the committed corpus, or one
 * crash to look into. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int main(int argc, char **argv)
{
	uint8_t *p = malloc(INPUT_MAX);

	if (!p)
		return 1;
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		uint8_t *exact;
		size_t n;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		n = fread(p, 1, INPUT_MAX, f);
		fclose(f);
		/* A block of exactly the input's size, so that a read past its end shows. */
		exact = malloc(n ? n : 1);
		if (!exact)
			return 1;
		for (size_t k = 0; k < n; k++)
			exact[k] = p[k];
		LLVMFuzzerTestOneInput(exact, n);
		free(exact);
	}
	free(p);
	return 0;
}
