() => {
  // Returns the texts with a contrast below 4.5 (WCAG 1.4.3), with their ratio.
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below, alpha) => below.map((value, n) => top[n] * alpha + value * (1 - alpha));
  const light = (colour) => colour
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (element) => {
    const above = element.parentElement ? ground(element.parentElement) : [255, 255, 255];
    const colour = read(getComputedStyle(element).backgroundColor);
    return over(colour, above, colour[3]);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.nodeValue.trim() || element.closest("script, style, noscript, option, .gone")) continue;
    if (!element.checkVisibility() || element.getBoundingClientRect().width < 2) continue;
    let alpha = 1;
    for (let at = element; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    const below = ground(element);
    const ink = read(getComputedStyle(element).color);
    const [high, low] = [light(over(ink, below, ink[3] * alpha)), light(below)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push([element.className, texts.currentNode.nodeValue.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return found;
}
