// The time, to the second, and whether the tab is visible. Both stop while the tab is hidden, so that a hidden tab does no work.
import { signal } from '@preact/signals'

export const clock = signal(Date.now())
export const isVisible = signal(document.visibilityState !== 'hidden')

let timer = 0

function apply() {
  isVisible.value = document.visibilityState !== 'hidden'
  clearInterval(timer)
  if (!isVisible.value) return
  clock.value = Date.now()
  timer = window.setInterval(() => {
    clock.value = Date.now()
  }, 1_000)
}

document.addEventListener('visibilitychange', apply)
apply()
