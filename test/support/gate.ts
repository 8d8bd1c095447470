// A promise that a test settles from outside.

export interface Gate<Value = void> {
  readonly opened: Promise<Value>
  open(value: Value): void
}

export function createGate<Value = void>(): Gate<Value> {
  let open: (value: Value) => void = () => undefined
  const opened = new Promise<Value>(resolve => {
    open = resolve
  })
  return { opened, open: value => open(value) }
}
