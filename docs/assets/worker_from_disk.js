// Browsers refuse workers to pages that are opened from disk; a hidden frame runs the search's script instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = this.inside.document.createElement("script");
          script.src = new URL(source, document.baseURI);
          script.onload = loaded;
          script.onerror = failed;
          this.inside.document.body.appendChild(script);
        });
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(next)), Promise.resolve());
      this.inside.postMessage = (data) => {
        const answer = new MessageEvent("message", { data });
        this.dispatchEvent(answer);
        this.onmessage?.(answer);
      };
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement?.remove();
    }
  };
}
