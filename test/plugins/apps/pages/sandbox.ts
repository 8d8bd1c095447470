// The sandbox of a client in a page, for tests: puts the page of an app into a frame, and hands messages on both ways.
const frame = document.createElement('iframe')
frame.setAttribute('sandbox', 'allow-scripts')
frame.style.cssText = 'width: 100%; height: 480px; border: 0'
document.body.append(frame)

window.addEventListener('message', ({ source, data }) => {
  if (source === window.parent) {
    if (data?.method === 'ui/notifications/sandbox-resource-ready') frame.srcdoc = data.params.html
    else frame.contentWindow?.postMessage(data, '*')
  } else if (source === frame.contentWindow && !String(data?.method).startsWith('ui/notifications/sandbox-')) {
    window.parent.postMessage(data, '*')
  }
})
window.parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*')
