package logkind

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
)

// InBucket tells paths of what lies in an S3 bucket: Lance datasets, and datagen logs.
func InBucket(path string) bool { return strings.HasPrefix(path, "s3://") }

// store opens what a dataset is in, a directory or a prefix of a bucket.
func (w World) store(log string) (objstore.Store, error) {
	if InBucket(log) {
		return datagen.OpenRoot(log)
	}
	return objstore.OpenLocal(log, objstore.LocalOptions{FS: w.liveFS()})
}

// identifyInBucket is the path if there is a dataset, and an error if there is nothing.
func identifyInBucket(ctx context.Context, path string) (string, error) {
	store, err := World{}.store(path)
	if err != nil {
		return "", err
	}
	for info, err := range store.List(ctx, objstore.ListOptions{Prefix: "_versions/"}) {
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(info.Key, ".manifest") {
			return path, nil
		}
	}
	return "", nil
}

// storeSize is the objects of a dataset that is in a bucket or at a server.
func (w World) storeSize(ctx context.Context, path string) (files, bytes, modifiedMS int64, err error) {
	store, err := w.store(path)
	if err != nil {
		return 0, 0, 0, err
	}
	for info, err := range store.List(ctx, objstore.ListOptions{}) {
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, bytes, modifiedMS, err
		}
		files++
		bytes += info.Size
		modifiedMS = max(modifiedMS, info.Modified.UnixMilli())
	}
	return files, bytes, modifiedMS, nil
}

// inLog is the path of a file of a dataset.
func (w World) inLog(log, key string) string {
	if InBucket(log) || w.Server != nil {
		return w.NameOf(log) + "/" + key
	}
	return filepath.Join(log, filepath.FromSlash(key))
}
