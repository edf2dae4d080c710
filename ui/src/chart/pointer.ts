// What is pointed at in one chart is shown in the others of the page that have the same
// horizontal axis: how the loss was when the learning rate fell.

type Hear = (x: number | null) => void

const hearers = new Set<Hear>()
let frame = 0
let told: { x: number | null; by: Hear } | null = null

/** Tells the other charts where one is pointed at, once for each frame. */
export function tellPointer(x: number | null, by: Hear) {
  told = { x, by }
  frame ||= requestAnimationFrame(() => {
    frame = 0
    const { x, by } = told!
    hearers.forEach(f => { if (f !== by) f(x) })
  })
}

export function hearPointer(f: Hear): () => void {
  hearers.add(f)
  return () => { hearers.delete(f) }
}
