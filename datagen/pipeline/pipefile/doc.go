// Package pipefile reads pipelines that people write as YAML, whose steps are
// commands in any language:
//
//	pipeline: digits
//	experiment: v1
//	items: digits.jsonl
//	steps:
//	  - loop: refine
//	    until: confidence >= 0.9
//	    max: 5
//	    steps:
//	      - step: perturb
//	        run: [python3, perturb.py]
//	        retry: {attempts: 3, backoff: 500ms}
//	      - step: classify
//	        run: python3 classify.py
//	  - filter: sure
//	    keep: confidence >= 0.9
//
// A command gets the item as one JSON object on standard input and prints the
// fields that change as a JSON object. docs/guide/datagen.md tells all of it.
package pipefile
