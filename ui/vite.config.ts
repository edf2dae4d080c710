import { defineConfig } from 'vite'

export default defineConfig({
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false }, outDir: 'dist' },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // `npm run dev` talks to a server that was started by `foldlog serve`.
  server: { proxy: { '/api': 'http://127.0.0.1:7654' } },
})
