// VTK: a cone in one layer, a sphere in the next, the product between them.
#include <EGL/egl.h>
#include <vtkActor.h>
#include <vtkCallbackCommand.h>
#include <vtkConeSource.h>
#include <vtkNew.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkSphereSource.h>

#include "toolkits/products.hpp"

namespace {

void show(vtkRenderer* layer, vtkPolyDataAlgorithm* shape, double red) {
  vtkNew<vtkPolyDataMapper> mapper;
  mapper->SetInputConnection(shape->GetOutputPort());
  vtkNew<vtkActor> actor;
  actor->SetMapper(mapper);
  actor->GetProperty()->SetColor(red, .7, .1);
  layer->AddActor(actor);
}

}  // namespace

int main() {
  vtkNew<vtkRenderWindow> window;
  window->SetSize(240, 160);
  window->SetNumberOfLayers(2);
  vtkNew<vtkRenderer> below, above;
  above->SetLayer(1);
  window->AddRenderer(below);
  window->AddRenderer(above);
  vtkNew<vtkConeSource> cone;
  vtkNew<vtkSphereSource> sphere;
  sphere->SetRadius(.3);
  show(below, cone, 1);
  show(above, sphere, .2);

  std::optional<toolkits::Products> products;
  vtkNew<vtkCallbackCommand> multiply;  // VTK has made the window's context current when it calls this
  multiply->SetClientData(&products);
  multiply->SetCallback([](vtkObject*, unsigned long, void* data, void*) {
    auto& its_products = *static_cast<std::optional<toolkits::Products>*>(data);
    if (!its_products) its_products.emplace(eglGetProcAddress);  // VTK has no function of its own
    its_products->multiply();
  });
  above->AddObserver(vtkCommand::StartEvent, multiply);

  for (int frame = 0; frame < toolkits::last_frame; ++frame) window->Render();
  toolkits::take_picture();
  window->MakeCurrent();
  products.reset();
  window->Finalize();  // which destroys the context
  return toolkits::end();
}
