import { options } from 'preact'

// Preact takes numbers in styles as they are; lengths are pixels here.
const bare = /^(opacity|flex|flexGrow|flexShrink|zIndex|fontWeight|lineHeight|order)$/
const before = options.vnode
options.vnode = vnode => {
  const style = typeof vnode.type === 'string' && (vnode.props as { style?: unknown }).style
  if (style && typeof style === 'object') {
    const out: { [key: string]: unknown } = {}
    for (const [k, v] of Object.entries(style)) out[k] = typeof v === 'number' && v !== 0 && !bare.test(k) ? v + 'px' : v
    ;(vnode.props as { style?: unknown }).style = out
  }
  before?.(vnode)
}
