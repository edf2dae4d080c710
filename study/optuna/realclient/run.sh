#!/usr/bin/env bash
# Runs the real client's tests or the benchmark: run.sh test|bench CHECKOUT FOLDLOG [ARG...]
set -euo pipefail
what=$1 checkout=$2
FOLDLOG=$(realpath "$3")
export FOLDLOG
shift 3
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cp -r "$checkout/optuna" "$checkout/tests" "$copy"
grpc=$copy/optuna/storages/_grpc
"$python" -m grpc_tools.protoc --proto_path="$grpc" --python_out="$grpc/auto_generated" \
	--grpc_python_out="$grpc/auto_generated" "$grpc/api.proto"
sed -i 's/^import api_pb2 as/import optuna.storages._grpc.auto_generated.api_pb2 as/' "$grpc/auto_generated/api_pb2_grpc.py"
export PYTHONPATH=$here:$copy PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
cd "$copy"
case $what in
test)
	pytest=("$python" -m pytest -q --color=no -p no:cacheprovider)
	"${pytest[@]}" -p foldlog_supplier tests/storages_tests/test_storages.py -k grpc_journal_file "$@"
	"${pytest[@]}" "$here/scenarios.py" "$@"
	;;
bench)
	"$python" "$here/bench.py" --foldlog "$FOLDLOG" "$@"
	;;
*)
	echo "usage: run.sh test|bench CHECKOUT FOLDLOG [ARG...]" >&2
	exit 2
	;;
esac
